"""`Policy`: the model that is trained, on the workers of a cluster."""

from collections.abc import Iterable
from typing import Any

from nemo_rl import script


class Policy:
    def train(
        self,
        data: Any,
        loss_fn: Any,
        eval_mode: bool = False,
        gbs: int | None = None,
        mbs: int | None = None,
        timer: Any = None,
        check_dim_skip_keys: Iterable[str] | None = None,
    ) -> Any:
        return script.run("train", locals())

    def get_logprobs(self, data: Any, timer: Any = None) -> Any:
        return script.run("get_logprobs", locals())

    def get_reference_policy_logprobs(
        self, data: Any, micro_batch_size: int | None = None, timer: Any = None
    ) -> Any:
        return script.run("get_reference_policy_logprobs", locals())
