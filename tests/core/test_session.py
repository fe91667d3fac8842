"""The one open session: opening it, closing it, and leaving nothing behind."""

import asyncio
import concurrent.futures
import gc
import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import rlotel
from rlotel import capture
from rlotel.semconv import attributes as attr
from rlotel.session import recorder
from rlotel.testing import captured


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("OTEL_", "RLOTEL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RLOTEL_CAPTURE", str(tmp_path / "capture.jsonl"))
    yield
    rlotel.uninstrument()


def patched_things() -> dict[str, object]:
    return {
        "submit": concurrent.futures.ThreadPoolExecutor.submit,
        "start": threading.Thread.start,
        "exit": sys.exit,
        "excepthook": sys.excepthook,
        "threading.excepthook": threading.excepthook,
        "environ": dict(os.environ),
        "sigterm": signal.getsignal(signal.SIGTERM),
        "sigint": signal.getsignal(signal.SIGINT),
        "wakeup": _wakeup_fd(),
        "task factory": asyncio.Task,
        "meta path": list(map(id, sys.meta_path)),
    }


def _wakeup_fd() -> int:
    fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd)
    return fd


def open_files() -> int:
    """How many there are; 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_everything_that_was_patched_is_put_back() -> None:
    with captured():
        pass  # so that what is imported once is there
    before, running = patched_things(), threads()
    with rlotel.instrument():
        assert patched_things() != before
        with rlotel.loop(), concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()
    assert patched_things() == before
    assert threads() == running


def test_a_second_call_returns_the_open_session() -> None:
    first = rlotel.instrument(run_id="first")
    assert rlotel.instrument(run_id="second") is first
    assert first.run_id == "first"
    rlotel.uninstrument()
    assert recorder() is None
    assert rlotel.instrument(run_id="third") is not first


def test_what_a_second_call_says_of_the_run_is_heard_and_the_rest_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with captured(model="base") as telemetry:
        rlotel.instrument(model="tuned", algorithm="GRPO", gpus=2, endpoint="http://127.0.0.1:1", run_id="other")
        with rlotel.loop(), rlotel.sample() as sampling:
            telemetry.clock.advance(1)
            sampling.add(samples=8)
        (rate,) = telemetry.points("rl.samples.rate_per_gpu")
    assert rate.value == 4
    assert {name: rate.attributes.get(name) for name in ("rl.model.name", "rl.algorithm", "rl.run.id")} == {
        "rl.model.name": "tuned",
        "rl.algorithm": "GRPO",
        "rl.run.id": "test",
    }
    (line,) = [line for line in caplog.messages if "already running" in line]
    assert "these arguments of instrument() are not used: endpoint, run_id." in line


def test_uninstrument_may_be_called_any_number_of_times() -> None:
    rlotel.uninstrument()
    session = rlotel.instrument()
    rlotel.uninstrument()
    rlotel.uninstrument()
    session.close()


def test_closing_a_session_that_is_over_leaves_the_next_one_open() -> None:
    first = rlotel.instrument()
    first.close()
    second = rlotel.instrument()
    first.close()
    assert recorder() is second.recorder


def test_a_wrong_setting_instruments_nothing() -> None:
    before = patched_things()
    with pytest.raises(rlotel.SettingError):
        rlotel.instrument(gpus=-1)
    with pytest.raises(rlotel.SettingError):
        rlotel.instrument(frameworks="nonesuch")
    assert (recorder(), patched_things()) == (None, before)


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_SDK_DISABLED", "true"), ("RLOTEL_ENABLED", "false"), ("OTEL_SDK_DISABLED", "1")]
)
def test_turned_off_it_starts_no_thread_and_touches_nothing(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, value)
    before, running = patched_things(), threads()
    descriptors = open_files()
    session = rlotel.instrument()
    with rlotel.loop() as loop, rlotel.train() as train:
        loop.set(reward=1)
        train.add(steps=1)
    assert session.flush() is False
    assert (patched_things(), threads()) == (before, running)
    assert open_files() == descriptors
    session.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (None, "completed"),
        (RuntimeError(), "failed"),
        (KeyboardInterrupt(), "cancelled"),
        (asyncio.CancelledError(), "cancelled"),
        (SystemExit(0), "completed"),
        (SystemExit(3), "failed"),
        (SystemExit(130), "cancelled"),
    ],
    ids=repr,
)
def test_the_last_export_says_how_the_run_ended(error: BaseException | None, state: str, tmp_path: Path) -> None:
    def run() -> None:
        with rlotel.instrument(run_id="r"), rlotel.loop():
            if error is not None:
                raise error

    if error is None:
        run()
    else:
        with pytest.raises(type(error)):
            run()
    states = {
        point.attributes["rl.run.state"]: point.value
        for point in capture.read(tmp_path / "capture.jsonl").latest("rl.run.status")
    }
    assert {name for name, value in states.items() if value} == {state}
    assert set(states) == {state.value for state in attr.RunState}


def test_while_it_runs_its_status_is_running() -> None:
    with captured() as telemetry:
        states = {p.attributes["rl.run.state"]: p.value for p in telemetry.points("rl.run.status")}
    assert {name for name, value in states.items() if value} == {"running"}


def test_only_the_launching_process_reports_status_and_restarts() -> None:
    with captured({"RLOTEL_ATTEMPT": "abc"}) as telemetry:
        with rlotel.loop():
            pass
        names = {point.name for point in telemetry.points()}
        assert not names & {"rl.run.status", "rl.restarts"}
        assert "rl.train.steps" in names


def test_a_worker_without_a_loop_reports_no_zeros_of_the_loop() -> None:
    with captured({"RLOTEL_ATTEMPT": "abc"}) as telemetry:
        with rlotel.reward():
            telemetry.clock.advance(1)
        assert "rl.train.steps" not in {point.name for point in telemetry.points()}
        assert telemetry.value("rl.worker.duration", **{"rl.phase.name": "reward"}) == 1
        with rlotel.loop():
            pass
        assert telemetry.value("rl.train.steps") == 0


def test_restarts_that_the_launcher_counted_are_told() -> None:
    with captured({"TORCHELASTIC_RESTART_COUNT": "2"}) as telemetry:
        assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 2


def test_processes_below_are_told_the_run() -> None:
    with rlotel.instrument(run_id="shared"):
        assert os.environ["RLOTEL_RUN_ID"] == "shared"
        assert os.environ["RLOTEL_ATTEMPT"]
    assert not {"RLOTEL_RUN_ID", "RLOTEL_ATTEMPT"} & os.environ.keys()


def test_a_session_can_be_opened_again_and_counts_anew(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            rlotel.instrument(run_id="r", capture=str(tmp_path / f"{_}.jsonl")),
            rlotel.loop(),
            rlotel.train() as train,
        ):
            train.add(steps=3)
    for number in range(2):
        (point,) = capture.read(tmp_path / f"{number}.jsonl").latest("rl.train.steps")
        assert point.value == 3


def test_a_hosts_providers_serve_one_session_after_the_other() -> None:
    reader = InMemoryMetricReader()
    tracers, meters = TracerProvider(shutdown_on_exit=False), MeterProvider([reader], shutdown_on_exit=False)
    for run in ("one", "two"):
        with (
            rlotel.instrument(run_id=run, tracer_provider=tracers, meter_provider=meters),
            rlotel.loop(),
            rlotel.train() as train,
        ):
            train.add(steps=len(run))
            data = reader.get_metrics_data()
            assert data is not None
            points = capture.Capture(tuple(capture.flatten(encode_metrics(data))[0]))
            assert [p.attributes["rl.run.id"] for p in points.latest("rl.train.steps")] == [run]
            assert not points.points("rl.loop.age", **{"rl.run.id": "one" if run == "two" else "two"})


def test_a_session_that_has_ended_is_let_go() -> None:
    with rlotel.instrument() as session, rlotel.loop(), rlotel.train():
        gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None


def test_flush_says_that_it_arrived_and_settles_the_identity(tmp_path: Path) -> None:
    with rlotel.instrument() as session:
        with rlotel.sync():
            pass
        assert session.flush(10) is True
        assert capture.read(tmp_path / "capture.jsonl").spans("rl.sync")
