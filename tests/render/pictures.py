"""A program: draws the pictures of all dashboards in `docs/`, from the runs that the tests are made of.

Run it as `python -m tests.render.pictures`; it wants Prometheus and a C compiler.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rlotel import capture
from rlotel.render import spelling
from tests.render.conftest import ROOT, STRETCH, program
from tests.render.runs import COLLECT_S, RUNS, run
from tests.render.stored import Store, open_metrics, stored, stretched

GPUS, DEMO = ("gpus",), ("overview", "where_the_time_goes", "learning_health", "checkpoints")
SHOWN = ("healthy", "slow weight sync", "entropy collapses", "killed")


def _draw(store: Store, names: tuple[str, ...]) -> None:
    for name in names:
        hours = str((store.end - store.start) / 3600)
        out = str(ROOT / "docs" / f"dashboard_{name}.png")
        times = ["--hours", hours, "--end", str(store.end)]
        command = ["dashboards", "preview", name, "--prometheus", store.url, *times, "--out", out]
        subprocess.run([sys.executable, "-c", "from rlotel.cli import main; main()", *command], check=True)


def main() -> None:
    """Draws them."""
    folder = Path(tempfile.mkdtemp(prefix="rlotel-pictures-"))
    (ROOT / "docs").mkdir(exist_ok=True)
    program(
        "-c",
        "from rlotel.cli import main; main()",
        *("demo", "--iterations", "40", "--gpus", "2", "--peak-flops", "1e11", "--json"),
        *("--nan-at", "12", "--stall-at", "18", "--fail-at", "25", "--restart", "--capture", str(folder / "demo")),
    )
    points = stretched(capture.read(folder / "demo").all_points, STRETCH)
    points = [replace(one, attributes={**one.attributes, "rl.run.id": "demo"}) for one in points]
    with stored(open_metrics(points, spelling.PROMETHEUS), folder / "1") as store:
        _draw(store, DEMO)
    points = [point for name in SHOWN for point in run(name, RUNS[name][0])]
    with stored(open_metrics(points, spelling.PROMETHEUS, COLLECT_S), folder / "2") as store:
        _draw(store, ("fleet",))
    library = folder / "nvml" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    options = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{library.name}", "-lpthread"]
    fake = str(ROOT / "tests/collectors/fake_nvml.c")
    subprocess.run(["cc", fake, *options, "-o", str(library)], check=True)
    environ = {"RLOTEL_CAPTURE": str(folder / "gpus"), "RLOTEL_EXPORT_INTERVAL": "1"}
    program(str(ROOT / "tests/render/two_processes.py"), LD_LIBRARY_PATH=str(library.parent), **environ)
    points = stretched(capture.read(folder / "gpus").all_points, STRETCH)
    with stored(open_metrics(points, spelling.PROMETHEUS), folder / "3") as store:
        _draw(store, GPUS)


if __name__ == "__main__":
    main()
