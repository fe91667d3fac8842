"""What is measured."""

from __future__ import annotations

import contextvars
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import rlotel
from benchmarks import gpu_poll
from benchmarks.by_hand import ByHand
from benchmarks.measuring import Row, calls, programs
from rlotel.errors import Faults
from rlotel.patching import Patches

TIMES = 100


def rows() -> list[Row]:
    """Every line of the table."""
    return [*disabled(), *watching(), *phases(), *threads(), *imports(), *gpu_poll.rows()]


def phases() -> list[Row]:
    """A phase with a span, a duration and two counts, as rlotel records it and written by hand."""
    hand = ByHand()

    def by_hand() -> None:
        with hand.train(512) as span:
            hand.count(span, 4, 81_000)

    def ours() -> None:
        with rlotel.train(batch_size=512) as train:
            train.add(steps=4, tokens=81_000)

    with (
        tempfile.TemporaryDirectory() as folder,
        _session(folder),
        hand.tracer.start_as_current_span("rl.loop"),
        rlotel.loop() as loop,
    ):
        interval = loop._interval  # noqa: SLF001 - so that every phase has its span, as by hand

        def between() -> None:
            interval.spans.clear()  # type: ignore[union-attr]

        taken = calls({"ours": ours, "by hand": by_hand}, TIMES, between)
    hand.close()
    return [
        Row("a phase: span, duration, 2 counts", taken["ours"], "the same by hand on the SDK", taken["by hand"])
    ]


def disabled() -> list[Row]:
    """A phase without a session."""

    def ours() -> None:
        with rlotel.train(batch_size=512) as train:
            train.add(steps=4, tokens=81_000)

    @rlotel.train
    def decorated() -> None:
        pass

    def plain() -> None:
        pass

    taken = calls({"with": ours, "decorated": decorated, "plain": plain}, TIMES * 10)
    return [
        Row("a phase with counts, without a session", taken["with"]),
        Row("a decorated function, without a session", taken["decorated"], "the function", taken["plain"]),
    ]


class Watched:
    """What is watched."""

    def step(self, value: int) -> int:
        """A function that does next to nothing."""
        return value + 1

    def plain(self, value: int) -> int:
        """The same, not watched."""
        return value + 1


def watching() -> list[Row]:
    """A call of a watched function, whose observers do nothing."""
    patches = Patches(Faults())
    patches.watch(f"{__name__}:Watched.step", before=lambda _: None, after=lambda _: None)
    watched = Watched()
    taken = calls({"step": lambda: watched.step(1), "plain": lambda: watched.plain(1)}, TIMES * 10)
    patches.undo()
    return [Row("a watched call", taken["step"], "the call alone", taken["plain"])]


def threads() -> list[Row]:
    """Handing a function to a pool, in a loop and out of one."""
    with tempfile.TemporaryDirectory() as folder, _session(folder), ThreadPoolExecutor(1) as pool:
        outside = contextvars.copy_context()
        with rlotel.loop():
            taken = calls(
                {"in": lambda: pool.submit(int).result(), "out": lambda: outside.run(pool.submit, int).result()},
                TIMES,
            )
    return [Row("work handed to a thread, in a loop", taken["in"], "the same outside of loops", taken["out"])]


def imports() -> list[Row]:
    """Starting."""
    sdk = (
        "import opentelemetry.sdk.metrics, opentelemetry.sdk.trace\n"
        "import opentelemetry.exporter.otlp.proto.http.metric_exporter\n"
        "import opentelemetry.exporter.otlp.proto.http.trace_exporter\n"
    )
    opened = "import rlotel; rlotel.instrument(capture='/dev/null'); rlotel.uninstrument()"
    taken = programs({"import": "import rlotel", "open": opened, "sdk": sdk})
    return [
        Row("import rlotel", taken["import"], "import of SDK and OTLP exporter", taken["sdk"]),
        Row("import, instrument, uninstrument", taken["open"], "import of SDK and OTLP exporter", taken["sdk"]),
    ]


def _session(folder: str) -> rlotel.Session:
    os.environ.pop("RLOTEL_ENABLED", None)
    return rlotel.instrument(run_id="benchmark", capture=str(Path(folder) / "capture.jsonl"))
