"""MLflow: `log_metric` and `log_metrics`, which both end in its client, as autologging does."""

from __future__ import annotations

from rlotel.adapters.log import Log
from rlotel.patching import Call, Patches


def connect(patches: Patches, log: Log) -> None:
    """Take what any client of this process logs. Its step 0 is what it says where it was told none."""

    def metric(call: Call) -> None:
        given = call.arguments
        log.take({given["key"]: given["value"]}, given["step"] or None)

    def batch(call: Call) -> None:
        for one in call.arguments["metrics"]:
            log.take({one.key: one.value}, one.step or None)

    patches.watch("mlflow.tracking.client:MlflowClient.log_metric", after=metric)
    patches.watch("mlflow.tracking.client:MlflowClient.log_batch", after=batch)
