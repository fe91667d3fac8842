"""A Ray cluster of two nodes, drivers in processes of their own, and a receiver that hears all of them."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from rlotel.otlp_records import Point, SpanRecord
from rlotel.receiver import Receiver

SETTINGS = ("OTEL_", "RLOTEL_", "RAY_", "PYTHONPATH")

PRELUDE = """
import json, os, sys, time
import ray, rlotel

def say(result):
    print("RESULT", json.dumps(result), flush=True)
"""


@dataclass(frozen=True)
class Cluster:
    """Where the cluster is. Its nodes have the resources `near` and `far`."""

    address: str
    dashboard: str


@dataclass(frozen=True)
class Done:
    """How a driver ended, and what it said."""

    process: "subprocess.CompletedProcess[str]"
    result: Any

    @property
    def complaints(self) -> list[str]:
        """What rlotel said, in the driver or, passed on by Ray, in a worker."""
        return [line for line in self.process.stderr.splitlines() if "rlotel" in line]


class Drive(Protocol):
    """Runs a driver to its end; `environ` is added to an environment that is empty of settings."""

    def __call__(self, code: str, *, timeout: float = 90, **environ: str) -> Done: ...


def plain(environ: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    return {**own, "RAY_AUTH_MODE": "disabled", "RAY_DEDUP_LOGS": "0", **environ}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """In a process of its own, since its children inherit the environment."""
    code = """
        import sys
        from ray.cluster_utils import Cluster
        head = {"num_cpus": 4, "resources": {"near": 100}, "include_dashboard": True, "dashboard_port": 0}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=4, resources={"far": 100})
        cluster.wait_for_nodes()
        print("READY", cluster.address, cluster.head_node.webui_url, flush=True)
        sys.stdin.read()
        cluster.shutdown()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=plain({}),
        cwd=tmp_path_factory.mktemp("cluster"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ready = next((line.split() for line in process.stdout if line.startswith("READY")), None)
    assert ready is not None, "the cluster did not start"
    yield Cluster(ready[1], f"http://{ready[2]}")
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


@pytest.fixture
def receiver(cluster: Cluster) -> Iterator[Receiver]:
    with Receiver() as listening:
        yield listening


@pytest.fixture
def drive(cluster: Cluster, receiver: Receiver, tmp_path: Path) -> Drive:
    def run(code: str, *, timeout: float = 90, **environ: str) -> Done:
        script = tmp_path / "driver.py"
        script.write_text(PRELUDE + textwrap.dedent(code))
        process = subprocess.run(
            [sys.executable, str(script)],
            env=plain({"RAY_ADDRESS": cluster.address, "RLOTEL_ENDPOINT": receiver.http_endpoint, **environ}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        said = [line for line in process.stdout.splitlines() if line.startswith("RESULT ")]
        return Done(process, json.loads(said[-1].removeprefix("RESULT ")) if said else None)

    return run


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has all that this one has, except rlotel."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = (path for path in sys.path if Path(path).name == "site-packages")
    # A folder that is named in a .pth file is only a path: the .pth files in it do nothing.
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "all-but-rlotel.pth").write_text(f"{site}\n")
    python = str(folder / "bin" / "python")
    probe = "import ray, opentelemetry, importlib.util as u; print(u.find_spec('rlotel.session'))"
    found = subprocess.run(
        [python, "-c", probe], env=plain({}), capture_output=True, text=True, check=False, cwd=folder
    )
    assert found.stdout.split()[-1:] == ["None"] or "ModuleNotFoundError" in found.stderr, found
    return python


def phases(receiver: Receiver) -> dict[str, SpanRecord]:
    """The spans that came, by the name of their phase; loops as `loop`."""
    found = {}
    for span in receiver.capture.all_spans:
        found[str(span.attributes.get("rl.phase.name") or span.name.removeprefix("rl."))] = span
    return found


def heard(receiver: Receiver, *names: str, timeout: float = 20) -> dict[str, SpanRecord]:
    """Waits for the spans of these phases, and returns all."""
    receiver.wait_for(lambda _: phases(receiver).keys() >= set(names), timeout)
    found = phases(receiver)
    assert found.keys() >= set(names), f"{sorted(set(names) - found.keys())} did not come; {sorted(found)} did"
    return found


def reporters(points: list[Point]) -> set[object]:
    """The processes that reported these points."""
    return {point.resource["process.pid"] for point in points}
