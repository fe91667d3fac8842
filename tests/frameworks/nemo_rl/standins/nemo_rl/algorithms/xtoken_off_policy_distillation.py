"""Distillation from a teacher with another tokenizer."""

from typing import Any

from nemo_rl import script


def xtoken_off_policy_distillation_train(
    student_policy: Any,
    teacher_policies: Any,
    dataloader: Any,
    val_dataloader: Any,
    loss_fn: Any,
    logger: Any,
    checkpointer: Any,
    off_policy_distillation_state: Any,
    master_config: Any,
) -> Any:
    return script.run("xtoken_off_policy_distillation_train", locals())
