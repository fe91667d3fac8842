"""The client of a server that makes rollouts, and a workflow that runs another one several times."""

import asyncio
from typing import Any


class RemoteInfEngine:
    """The client of a server."""

    def launch_server(self, server_args: Any) -> None:
        """Start it."""


class GroupedRolloutWorkflow:
    """One prompt, several rollouts."""

    def __init__(self, workflow: Any, group_size: int, logger: Any) -> None:
        self.workflow = workflow
        self.group_size = group_size
        self.logger = logger

    async def arun_episode(self, engine: Any, data: Any) -> Any:
        """All of them."""
        return await asyncio.gather(*[self.workflow.arun_episode(engine, data) for _ in range(self.group_size)])
