"""Stand-in: what the launcher calls with its arguments."""

from typing import Any

from openrlhf.script import play


def get_strategy(args: Any) -> Any:
    return play("get_strategy", locals())
