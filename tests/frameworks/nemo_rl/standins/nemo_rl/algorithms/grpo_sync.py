"""GRPO with a TransferQueue."""

from typing import Any

from nemo_rl import script


def grpo_train_sync(
    policy: Any,
    policy_generation: Any,
    wrapped_dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    task_to_env: Any,
    val_task_to_env: Any,
    logger: Any,
    checkpointer: Any,
    grpo_save_state: Any,
    master_config: Any,
) -> Any:
    return script.run("grpo_train_sync", locals())
