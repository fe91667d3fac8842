"""Running promtool over rendered rules and the cases that the alerts are tested with."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from rlotel.render import prometheus_rules
from rlotel.render.cases import promtool_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlotel.render.alert import Alert
    from rlotel.render.options import Options
    from rlotel.render.spelling import Spelling

_SECONDS = 600


class PromtoolMissingError(Exception):
    """promtool is not installed. The message says how to get it."""


def check(
    alerts: Sequence[Alert], spelling: Spelling, options: Options, sources: Path | None = None
) -> str | None:
    """What promtool finds wrong with the rules or their cases; None if all is well.

    Raises:
        PromtoolMissingError: it is not installed.
        SourceError: a case is wrong, or an alert has none.
    """
    program = shutil.which("promtool")
    if program is None:
        raise PromtoolMissingError(
            "promtool is not installed; it comes with Prometheus: apt-get install prometheus"
        )
    tests = promtool_tests(alerts, spelling, "rules.yaml", sources)
    rules = prometheus_rules.render(alerts, spelling, options)
    with tempfile.TemporaryDirectory(prefix="rlotel-alerts-") as name:
        folder = Path(name)
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules, sort_keys=False), encoding="utf-8")
        (folder / "tests.yaml").write_text(yaml.safe_dump(tests, sort_keys=False), encoding="utf-8")
        for arguments in (["check", "rules", "rules.yaml"], ["test", "rules", "tests.yaml"]):
            done = subprocess.run(
                [program, *arguments], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            if done.returncode:
                return done.stdout + done.stderr
    return None
