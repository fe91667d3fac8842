"""`Timer`, which trainers time themselves with, and the launcher's connection to Ray."""

from typing import Any

from .. import script


class Timer:
    def __init__(self, message: str, update_dict: dict[str, float] | None = None) -> None:
        self.message = message
        self.update_dict = update_dict

    def __enter__(self) -> "Timer":
        self.start_time = script.now()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        if self.update_dict is not None:
            passed = script.now() - self.start_time
            self.update_dict[self.message] = self.update_dict.get(self.message, 0.0) + passed


def initialize_ray(cfg: Any) -> None:
    script.run("initialize_ray", locals())
