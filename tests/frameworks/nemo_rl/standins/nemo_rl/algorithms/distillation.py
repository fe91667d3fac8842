"""Distillation."""

from typing import Any

from nemo_rl import script


def distillation_train(
    student_policy: Any,
    teacher_policy: Any,
    student_generation: Any,
    dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    task_to_env: Any,
    val_task_to_env: Any,
    logger: Any,
    checkpointer: Any,
    distillation_save_state: Any,
    master_config: Any,
) -> Any:
    return script.run("distillation_train", locals())
