"""DPO."""

from typing import Any

from nemo_rl import script


def dpo_train(
    policy: Any,
    train_dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    master_config: Any,
    logger: Any,
    checkpointer: Any,
    dpo_save_state: Any,
) -> Any:
    return script.run("dpo_train", locals())
