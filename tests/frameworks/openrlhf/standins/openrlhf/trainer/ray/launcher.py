"""Stand-in: what is watched of the workers that hold models, and of their groups."""

from typing import Any

from openrlhf.script import play


class BaseDistributedActor:
    def __init__(self, world_size: int, rank: int, master_addr: Any, master_port: Any) -> None:
        pass


class BaseModelActor(BaseDistributedActor):
    def execute_batch(self, method_name: str, all_data: Any, start_idx: int, end_idx: int) -> Any:
        return play("BaseModelActor.execute_batch", locals())


class PolicyModelActor(BaseModelActor):
    pass


class RayActorGroup:
    def async_run_method(self, method_name: str, *args: Any, **kwargs: Any) -> Any:
        return play("RayActorGroup.async_run_method", locals())
