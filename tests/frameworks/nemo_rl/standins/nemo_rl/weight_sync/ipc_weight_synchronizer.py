"""One way for weights to get to the engines that make rollouts."""

from typing import Any

from nemo_rl import script


class IPCWeightSynchronizer:
    def sync_weights(self, *, timer: Any = None, kv_scales: dict[str, float] | None = None) -> Any:
        return script.run("sync_weights", locals())
