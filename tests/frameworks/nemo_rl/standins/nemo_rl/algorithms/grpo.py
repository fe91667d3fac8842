"""GRPO, and the transfer of weights that others use, too."""

from typing import Any

from nemo_rl import script


def refit_policy_generation(
    policy: Any,
    policy_generation: Any,
    colocated_inference: Any,
    _refit_buffer_size_gb: Any = None,
    timer: Any = None,
    kv_scales: Any = None,
) -> Any:
    return script.run("refit_policy_generation", locals())


def grpo_train(
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
    processor: Any = None,
) -> Any:
    return script.run("grpo_train", locals())


def async_grpo_train(
    policy: Any,
    policy_generation: Any,
    dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    task_to_env: Any,
    val_task_to_env: Any,
    logger: Any,
    checkpointer: Any,
    grpo_save_state: Any,
    master_config: Any,
    max_trajectory_age_steps: Any = 1,
    teacher_worker_groups: Any = None,
    alias_to_group_alias: Any = None,
    processor: Any = None,
) -> Any:
    return script.run("async_grpo_train", locals())
