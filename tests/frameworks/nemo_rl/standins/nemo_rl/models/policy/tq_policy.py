"""`TQPolicy`: a policy whose rows come through a TransferQueue."""

from typing import Any

from nemo_rl import script


class TQPolicy:
    def prepare_step(self, num_samples: int, group_size: int | None = None) -> None:
        script.run("prepare_step", locals())

    def train_from_meta(
        self,
        meta: Any,
        loss_fn: Any,
        eval_mode: bool = False,
        gbs: int | None = None,
        mbs: int | None = None,
        timer: Any = None,
        train_fields: Any = (),
    ) -> Any:
        return script.run("train_from_meta", locals())

    def train_microbatches_from_meta(self, meta: Any, timer: Any = None) -> None:
        script.run("train_microbatches_from_meta", locals())

    def finish_train_step(self) -> Any:
        return script.run("finish_train_step", locals())
