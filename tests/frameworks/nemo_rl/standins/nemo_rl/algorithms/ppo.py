"""PPO."""

from typing import Any

from nemo_rl import script


def ppo_train(
    policy: Any,
    policy_generation: Any,
    value_model: Any,
    dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    value_loss_fn: Any,
    task_to_env: Any,
    val_task_to_env: Any,
    logger: Any,
    checkpointer: Any,
    ppo_save_state: Any,
    master_config: Any,
) -> Any:
    return script.run("ppo_train", locals())


def async_ppo_train(
    policy: Any,
    policy_generation: Any,
    value_model: Any,
    dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    value_loss_fn: Any,
    task_to_env: Any,
    val_task_to_env: Any,
    logger: Any,
    checkpointer: Any,
    ppo_save_state: Any,
    master_config: Any,
) -> Any:
    return script.run("async_ppo_train", locals())
