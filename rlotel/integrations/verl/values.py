"""What verl logs, told by its keys: values of training become gauges, those of a validation scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlotel.errors import log
from rlotel.integrations.verl.tables import ALL_ABORTED, GAUGES, MFU, VALIDATION, Gauge
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

ABORTED = "all_samples_aborted"


def training(recorder: Recorder, data: Mapping[str, Any]) -> None:
    """Set the gauges of an iteration."""
    aborted = data.get(ALL_ABORTED) == 1
    if aborted:
        recorder.instruments.add(m.FINDINGS, 1, {attr.FINDING_NAME.name: ABORTED})
        log.warning("all rollouts of an iteration were aborted: it has no reward")
    for key, gauges in GAUGES.items():
        if key in data and not (aborted and _is_nan(data[key])):
            for gauge in gauges:
                _set(recorder, gauge, data[key])


def mfu(recorder: Recorder, data: Mapping[str, Any]) -> None:
    """Set verl's own model FLOPs utilization."""
    for key, gauge in MFU.items():
        if key in data:
            _set(recorder, gauge, data[key])


def validation(recorder: Recorder, data: Mapping[str, Any]) -> None:
    """Set the scores of a validation; they may come with an iteration's values or by themselves."""
    for key, value in data.items():
        if key.startswith(VALIDATION):
            recorder.set(m.EVALUATION_SCORE, value, {attr.EVALUATION_NAME.name: key.removeprefix(VALIDATION)})


def _set(recorder: Recorder, gauge: Gauge, value: Any) -> None:
    if not (gauge.zero_is_unknown and (value == 0 or _is_nan(value))):
        recorder.set(gauge.metric, value, gauge.attributes)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
