"""What one call of an empty Ray actor costs: plain, under rlotel, and under Ray's own tracing.

`make bench-ray`. Each kind runs on a cluster of its own, in turn, several times. Ratios are of the medians, and of
these the best round counts: what disturbs a machine only ever makes calls slower. Under rlotel the calls are made
in a phase of a loop, so each carries it, and everything is exported to a receiver in another process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

KINDS = ("plain", "rlotel", "ray")
ROUNDS = 3
CALLS = 1500
WARM = 300


def trace() -> None:
    """Ray's tracing hook: spans are made, put in a queue and dropped in batches."""
    from opentelemetry import trace as otel
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:  # noqa: ARG002 - the interface's
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    otel.set_tracer_provider(provider)


class Empty:
    """An actor that does nothing."""

    def call(self) -> None:
        """Do nothing."""


def nothing() -> None:
    """A task that does nothing."""


def seconds(call: Callable[[], object]) -> float:
    """The median time of one call."""
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(kind: str) -> dict[str, float]:
    """The medians of one kind, in this process."""
    import ray

    import rlotel

    if kind == "rlotel":
        rlotel.instrument()
    hook = {"_tracing_startup_hook": "benchmarks.ray_calls:trace"} if kind == "ray" else {}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, **hook)

    remote = ray.remote(num_cpus=0)
    actor_class, task = remote(Empty), remote(nothing)
    with rlotel.loop(), rlotel.sample():
        actor = actor_class.remote()
        for _ in range(WARM):
            ray.get(actor.call.remote())
            ray.get(task.remote())
        found = {
            "actor call, answered": seconds(lambda: ray.get(actor.call.remote())),
            "actor call, submitted": seconds(lambda: actor.call.remote()),
            "task, answered": seconds(lambda: ray.get(task.remote())),
        }
    ray.shutdown()
    return found


def in_a_process(kind: str, endpoint: str) -> dict[str, float]:
    """The same in a process of its own, with a cluster of its own."""
    root = str(Path(__file__).resolve().parent.parent)
    environ = {
        **os.environ,
        "PYTHONPATH": root,
        "RAY_AUTH_MODE": "disabled",
        "RLOTEL_ENDPOINT": endpoint,
        "RLOTEL_ENABLED": "",
    }
    command = [sys.executable, "-m", "benchmarks.ray_calls", kind]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure all, and print a table."""
    from rlotel.receiver import Receiver

    with Receiver() as receiver:
        rounds = [{kind: in_a_process(kind, receiver.http_endpoint) for kind in KINDS} for _ in range(ROUNDS)]
    print(f"{'':24}" + "".join(f"{kind:>16}" for kind in KINDS))
    for what in rounds[0]["plain"]:
        best = {kind: min(one[kind][what] for one in rounds) for kind in KINDS}
        cells = [f"{best[kind] * 1e6:8.0f} µs {best[kind] / best['plain']:3.2f}x" for kind in KINDS]
        print(f"{what:24}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
