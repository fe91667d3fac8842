"""The configuration of the single controller."""

from typing import Any

from nemo_rl import script


def validate_single_controller_config(master_config: Any) -> None:
    script.run("validate_single_controller_config", locals())
