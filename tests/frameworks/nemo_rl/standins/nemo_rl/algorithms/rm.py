"""Reward models."""

from typing import Any

from nemo_rl import script


def rm_train(
    policy: Any,
    train_dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    master_config: Any,
    logger: Any,
    checkpointer: Any,
    rm_save_state: Any,
) -> Any:
    return script.run("rm_train", locals())
