"""Write everything that comes from the model: Python, reference tables, and the schema of the model itself.

Run it as `python semconv/generate.py`; with `--check` it writes nothing and lists the files that are stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from generator import model as source
from generator import policies, python, readme, schema, tables

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent


def render(root: Path) -> dict[Path, str]:
    """Every generated file and the text it should have.

    Raises:
        ModelError: the model is wrong.
    """
    semconv, package = root / "semconv", root / "rlotel" / "semconv"
    files = source.read_files(semconv / "model")
    buckets = source.read_buckets(semconv / "buckets.yaml")
    crosswalk = yaml.safe_load((semconv / "crosswalk.yaml").read_text(encoding="utf-8"))
    form = schema.schema(files, buckets)
    _refuse(schema.problems(form, files))
    model = source.resolve(files, buckets)
    _refuse(policies.problems(model, crosswalk))
    return {
        root / "README.md": readme.fill((root / "README.md").read_text(encoding="utf-8"), model),
        semconv / "README.md": tables.readme(model, crosswalk),
        semconv / "schema.json": json.dumps(form, indent=2) + "\n",
        package / "attributes.py": python.attributes(model),
        package / "metrics.py": python.metrics(model),
        package / "spans.py": python.spans(model),
    }


def _refuse(problems: Iterable[str]) -> None:
    if found := "\n".join(problems):
        raise source.ModelError(found)


def main() -> int:
    """0 if all is written or fresh, 1 if something is stale or the model is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; list stale files")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: this one)")
    arguments = parser.parse_args()
    try:
        files = render(arguments.root)
    except source.ModelError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    stale = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        sys.stdout.write(f"{'stale' if arguments.check else 'wrote'} {path.relative_to(arguments.root)}\n")
        if not arguments.check:
            path.write_text(files[path], encoding="utf-8")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
