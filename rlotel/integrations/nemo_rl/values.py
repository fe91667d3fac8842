"""From what NeMo RL logs to gauges: the values of training, and apart from them those of validations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

from rlotel import gates
from rlotel.integrations.nemo_rl.counts import Counts
from rlotel.integrations.nemo_rl.iterations import Iterations
from rlotel.integrations.nemo_rl.setup import reports_itself
from rlotel.integrations.nemo_rl.tables import PERFORMANCE_GAUGES, TRAIN_GAUGES, Gauge
from rlotel.patching import Call
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.words import FLOPS, TRAIN

VALIDATION = "validation"


class Values:
    """Follows `Logger.log_metrics`."""

    def __init__(self, recorder: Recorder, iterations: Iterations, counts: Counts) -> None:
        self._recorder = recorder
        self._iterations = iterations
        self._counts = counts

    def logged(self, call: Call) -> None:
        """Before it, since backends may change what they are given.

        One call is not one iteration: rollouts are logged before results, GPUs from another thread with a step of
        their own, and a watchdog logs when it likes.
        """
        prefix = call.arguments.get("prefix")
        if not isinstance(prefix, str):
            return
        metrics: Mapping[str, Any] = call.arguments["metrics"]
        if prefix == "train":
            self._counts.logged(scalars(metrics))
            self._set(metrics, TRAIN_GAUGES)
        elif prefix == "performance":
            self._set(metrics, PERFORMANCE_GAUGES)
        elif prefix == "timing/train":
            self._iterations.logged(call.arguments["step"])
        elif prefix.startswith(VALIDATION):
            self._evaluated(metrics, prefix.removeprefix(VALIDATION).removeprefix("-"))

    def _set(self, metrics: Mapping[str, Any], gauges: Mapping[str, Gauge]) -> None:
        native, numbers = reports_itself(), scalars(metrics)
        for key, gauge in gauges.items():
            if metrics.get(key) is None or (native and gauge.native):
                continue
            if gauge.metric is m.TRAIN_MFU and self._has_mfu():
                continue
            value = numbers.get(key)
            if value is None:
                value = metrics[key]  # to be refused, and counted as that
            elif gauge.zero_is_unknown and value == 0:
                continue
            elif gauge.summed:
                value /= max(self._counts.steps, 1)
            self._recorder.set(gauge.metric, value, gauge.attributes)

    def _has_mfu(self) -> bool:
        """Whether ours follows from the FLOPs that were counted."""
        hardware, current = self._recorder.hardware, self._iterations.current
        return bool(
            hardware.gpus and hardware.peak_flops and current and f"{TRAIN}.{FLOPS}" in current.loop.counts
        )

    def _evaluated(self, metrics: Mapping[str, Any], dataset: str) -> None:
        for key, value in scalars(metrics).items():
            if not math.isinf(value):  # what there was nothing to compute from
                name = f"{dataset}/{key}" if dataset else key
                self._recorder.set(m.EVALUATION_SCORE, value, {attr.EVALUATION_NAME.name: name})


def scalars(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers in it; lists, tables, histograms and flags that are logged beside them say nothing here."""
    found = {}
    for key, value in metrics.items():
        with contextlib.suppress(gates.Refused):
            found[str(key)] = gates.number(value)
    return found
