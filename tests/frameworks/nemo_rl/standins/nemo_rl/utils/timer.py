"""`Timer`: how NeMo RL times its loops."""

from collections.abc import Iterator
from contextlib import contextmanager

from nemo_rl import script


class Timer:
    def __init__(self, context: dict[str, object] | None = None) -> None:
        self._timers: dict[str, list[float]] = {}
        self._start_times: dict[str, float] = {}
        self._context = context or {}

    def start(self, label: str, should_log: bool = True) -> None:
        if label in self._start_times:
            raise ValueError(f"Timer '{label}' is already running")
        self._start_times[label] = script.now()

    def stop(self, label: str, should_log: bool = True) -> float:
        if label not in self._start_times:
            raise ValueError(f"Timer '{label}' is not running")
        elapsed: float = script.now() - self._start_times.pop(label)
        self._timers.setdefault(label, []).append(elapsed)
        return elapsed

    @contextmanager
    def time(self, label: str, should_log: bool = True) -> Iterator[None]:
        self.start(label, should_log)
        try:
            yield
        finally:
            self.stop(label, should_log)

    def get_timing_metrics(self, reduction_op: str = "mean") -> dict[str, float]:
        return {label: sum(times) for label, times in self._timers.items()}

    def reset(self, label: str | None = None) -> None:
        if label is None:
            self._timers = {}
            self._start_times = {}
        else:
            self._timers.pop(label, None)
            self._start_times.pop(label, None)
