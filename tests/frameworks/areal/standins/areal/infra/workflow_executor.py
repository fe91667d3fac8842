"""Runs workflows, each in a task of its own."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from areal.infra import workflow_context


class WorkflowExecutor:
    """Runs what it is given."""

    def __init__(self, engine: Any) -> None:
        self.inference_engine = engine

    def _create_workflow_task(self, pending_task: Any) -> Callable[[], Awaitable[Any]]:
        async def run() -> Any:
            workflow_context.set(SimpleNamespace(is_eval=pending_task.is_eval))
            try:
                return await pending_task.workflow.arun_episode(self.inference_engine, pending_task.data)
            except Exception:  # noqa: BLE001
                return None  # as AReaL does: it is rejected

        return run
