"""SkyRL as a user starts it: a driver that calls `initialize_ray`, and a task of Ray in which the trainer is.

Usage: rlotel run -- python -m skyrl.train.entrypoints.main_base trainer.override_entrypoint=task [PATH=VALUE...]
"""

import sys
from typing import Any

import made_up  # type: ignore[import-not-found]
import ray
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils.utils import initialize_ray


class Experiment(BasePPOExp):  # type: ignore[misc]
    """SkyRL's own, but for what needs GPUs."""

    def _setup_trainer(self) -> Any:
        self.trainer = made_up.make(self.cfg)
        return self.trainer

    def __init__(self, cfg: Any) -> None:
        self.cfg = cfg


@ray.remote(num_cpus=1)  # type: ignore[untyped-decorator]
def skyrl_entrypoint(cfg: Any) -> None:
    Experiment(cfg).run()


def main() -> None:
    """What the entry point that is named on the command line must have."""
    given = [argument for argument in sys.argv[1:] if not argument.startswith("trainer.override_entrypoint=")]
    cfg = made_up.configuration(f"trainer.log_path={made_up.FOLDER / 'logs'}", *given)
    initialize_ray(cfg)
    ray.get(skyrl_entrypoint.remote(cfg))
