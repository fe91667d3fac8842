"""MLflow: `log_metric` and `log_metrics`, which both end in its client, as autologging does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlotel.adapters.log import Log
from rlotel.logged.times import moment
from rlotel.patching import Call, Patches


@dataclass
class _Row:
    """What a batch has of one step."""

    step: int | None
    ago: float
    """Seconds between it and the latest of the batch, which is logged now: autologging gathers many steps."""
    values: dict[str, float]


def _rows(metrics: Sequence[Any]) -> list[_Row]:
    """The steps of a batch, whatever order its metrics have; of a key that comes again without steps, several."""
    found: dict[tuple[int, int], _Row] = {}
    times: Counter[tuple[str, int]] = Counter()
    moments = [moment(one.timestamp) for one in metrics]
    latest = max((when for when in moments if when is not None), default=None)
    for one, when in zip(metrics, moments, strict=True):
        ago = latest - when if latest is not None and when is not None else 0.0
        row = found.setdefault((one.step, times[one.key, one.step]), _Row(one.step or None, ago, {}))
        row.values[one.key] = one.value
        row.ago = min(row.ago, ago)
        times[one.key, one.step] += 1
    return list(found.values())


def connect(patches: Patches, log: Log) -> None:
    """Take what any client of this process logs. Its step 0 is what it says where it was told none."""

    def metric(call: Call) -> None:
        given = call.arguments
        log.take({given["key"]: given["value"]}, given["step"] or None)

    def batch(call: Call) -> None:
        for row in _rows(call.arguments["metrics"]):
            log.take(row.values, row.step, at=log.ago(row.ago))

    patches.watch("mlflow.tracking.client:MlflowClient.log_metric", after=metric)
    patches.watch("mlflow.tracking.client:MlflowClient.log_batch", after=batch)
