"""Checkpoints: what blocks training, and when one is there to come back to."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Nemo


class Threads:
    """Finalizes checkpoints in a thread, as NeMo RL does after 0.7."""

    def __init__(self, nemo: Nemo) -> None:
        self._nemo = nemo
        self._thread = threading.Thread(target=lambda: None)
        self._error: Exception | None = None
        self._thread.start()
        nemo.play(begin_finalization=self.begin, finalize_pending=self.finish)

    def begin(self, checkpoint_path: str, wait_fn: Callable[[], None]) -> None:
        def finalize() -> None:
            try:
                wait_fn()
                self._nemo.checkpointer._rename_checkpoint(checkpoint_path)
            except Exception as error:  # noqa: BLE001 - as in NeMo RL
                self._error = error

        self._thread = threading.Thread(target=finalize)
        self._thread.start()

    def finish(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise RuntimeError("Background checkpoint finalization failed") from self._error


def durations(nemo: Nemo) -> dict[Any, tuple[float | None, Any]]:
    return {
        point.attributes["rl.checkpoint.blocking"]: (point.sum, point.attributes.get("error.type"))
        for point in nemo.telemetry.points("rl.checkpoint.duration")
    }


def saved(nemo: Nemo) -> list[float | None]:
    return [point.value for point in nemo.telemetry.points("rl.checkpoint.step")]


def test_a_checkpoint_counts_once_its_folder_has_its_name(nemo: Nemo) -> None:
    """To 0.7 in the trainer's thread."""

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"), timer.time("checkpointing"):
            nemo.pass_(20)
            assert saved(nemo) == []
            nemo.checkpointer.finalize_checkpoint("/results/grpo/tmp_step_120")

    nemo.train(body)
    assert (durations(nemo), saved(nemo)) == ({True: (20, None)}, [120])


def test_training_goes_on_while_a_checkpoint_is_written(nemo: Nemo) -> None:
    written, threads = threading.Event(), Threads(nemo)

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("checkpointing"):
                nemo.pass_(2)
                nemo.checkpointer.begin_finalization(
                    "/results/grpo/tmp_step_7", wait_fn=lambda: [written.wait(30)]
                )
            nemo.pass_(1)
        nemo.logger.log_metrics({}, 7, "timing/train")
        with timer.time("total_step_time"):
            nemo.pass_(40)
            assert saved(nemo) == []
            written.set()
            threads.finish()

    nemo.train(body, grpo_save_state={"total_steps": 6})
    assert (durations(nemo), saved(nemo)) == ({True: (2, None), False: (41, None)}, [7])
    blocking, background = nemo.telemetry.spans("rl.checkpoint")
    assert blocking.trace_id == background.trace_id


def test_a_checkpoint_that_could_not_be_written_has_failed(nemo: Nemo) -> None:
    threads = Threads(nemo)

    def write() -> None:
        raise OSError("no space left on device")

    nemo.checkpointer.begin_finalization("/results/grpo/tmp_step_7", wait_fn=write)
    with pytest.raises(RuntimeError, match="finalization failed"):
        nemo.checkpointer.finalize_pending()
    assert threads
    assert (durations(nemo), saved(nemo)) == ({False: (0, "OSError")}, [])


@pytest.mark.parametrize(("enabled", "ages"), [(True, [600]), (False, [])])
def test_the_age_of_the_last_checkpoint_begins_with_the_run(nemo: Nemo, enabled: bool, ages: list[float]) -> None:
    seen: list[Any] = []

    def body() -> None:
        with nemo.timer().time("total_step_time"):
            nemo.pass_(600)
            seen.extend(point.value for point in nemo.telemetry.points("rl.checkpoint.age"))

    nemo.train(body, master_config={"checkpointing": {"enabled": enabled, "checkpoint_dir": "/results"}})
    assert seen == ages


def test_a_bucket_is_told_from_a_folder(nemo: Nemo) -> None:
    def body() -> None:
        with nemo.timer().time("total_step_time"), nemo.timer().time("checkpointing"):
            nemo.checkpointer.finalize_checkpoint("gs://bucket/run/tmp_step_3")

    nemo.train(body, master_config={"checkpointing": {"enabled": True, "checkpoint_dir": "gs://bucket/run"}})
    nemo.train(body, master_config={"checkpointing": {"enabled": True, "checkpoint_dir": "/results"}})
    tiers = [point.attributes.get("rl.checkpoint.tier") for point in nemo.telemetry.points("rl.checkpoint.step")]
    assert tiers == ["object_storage", None]  # a mounted folder may be anything
