"""Captures of runs that rlotel really reported, stored in real Prometheus servers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlotel import capture
from rlotel.render import spelling
from tests.collectors.conftest import Builds, builds
from tests.render.runs import COLLECT_S, RUNS, run
from tests.render.stored import Store, open_metrics, stored, stretched, tool

__all__ = ["builds"]

ROOT = Path(__file__).resolve().parent.parent.parent
STRETCH = 600
"""An iteration takes about a second in the demo, half of one in the two processes, and minutes in real runs."""


def program(*arguments: str, **environ: str) -> None:
    """Runs Python with these arguments in a plain environment; it must end well."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "RLOTEL_"))}
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**plain, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The demo with everything that goes wrong in it, as if its iterations took minutes."""
    tool("prometheus")
    folder = tmp_path_factory.mktemp("demo")
    mishaps = ["--nan-at", "4", "--stall-at", "6", "--fail-at", "9", "--restart"]
    sizes = ["--iterations", "12", "--gpus", "2", "--peak-flops", "1e11"]
    program(
        "-c",
        "from rlotel.cli import main; main()",
        "demo",
        *sizes,
        *mishaps,
        "--json",
        "--capture",
        str(folder / "capture.jsonl"),
    )
    points = stretched(capture.read(folder / "capture.jsonl").all_points, STRETCH)
    with stored(open_metrics(points, spelling.PROMETHEUS), folder) as store:
        yield store


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory: pytest.TempPathFactory, builds: Builds) -> Iterator[Store]:
    """A launcher and a worker on a node with eight GPUs."""
    tool("prometheus")
    folder = tmp_path_factory.mktemp("two-processes")
    program(
        str(ROOT / "tests/render/two_processes.py"),
        LD_LIBRARY_PATH=str(builds.new),
        RLOTEL_CAPTURE=str(folder / "capture.jsonl"),
        RLOTEL_EXPORT_INTERVAL="1",
    )
    points = stretched(capture.read(folder / "capture.jsonl").all_points, STRETCH)
    with stored(open_metrics(points, spelling.PROMETHEUS), folder) as store:
        yield store


@pytest.fixture(scope="session")
def all_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Every run of `runs.py`, each under its name."""
    tool("prometheus")
    points = [point for name, (ill, _) in RUNS.items() for point in run(name, ill)]
    folder = tmp_path_factory.mktemp("runs")
    with stored(open_metrics(points, spelling.PROMETHEUS, COLLECT_S), folder) as store:
        yield store


@pytest.fixture(scope="session")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """What DCGM and GKE would send. This is a fixture made by hand: neither is here."""
    tool("prometheus")
    samples = {
        'DCGM_FI_DEV_GPU_UTIL{Hostname="n1",gpu="0"}': 97,
        'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{Hostname="n1",gpu="0"}': 0.4,
        'DCGM_FI_DEV_FB_USED{Hostname="n1",gpu="0"}': 61000,
        'DCGM_FI_DEV_GPU_TEMP{Hostname="n1",gpu="0"}': 61,
    }
    container = '{monitored_resource="k8s_container",pod_name="p"}'
    for name, value in (("duty_cycle", 97), ("memory_used", 6e10), ("memory_total", 8e10)):
        samples[f"kubernetes_io:container_accelerator_{name}{container}"] = value
    lines = [
        f"{series} {value} {1_700_000_000 + at}" for series, value in samples.items() for at in range(0, 600, 60)
    ]
    with stored("\n".join([*lines, "# EOF", ""]), tmp_path_factory.mktemp("neighbours")) as store:
        yield store
