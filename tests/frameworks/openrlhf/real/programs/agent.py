"""An agent whose environment answers once or twice, as `--train.agent_func_path` names one."""

import asyncio
from typing import Any

import torch
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor


class Environment(AgentInstanceBase):  # type: ignore[misc]
    def __init__(self, *args: Any, **settings: Any) -> None:
        self.turns = 0

    async def step(self, states: dict[str, Any], **settings: Any) -> dict[str, Any]:
        await asyncio.sleep(0.005)
        self.turns += 1
        done = self.turns == 2 or states["action_text"].endswith("0")
        reward = float(states["action_text"][-1:] in "02468")
        return {
            "rewards": torch.tensor(reward),
            "scores": torch.tensor(reward),
            "environment_feedback": "" if done else "!",
            "done": done,
            "sampling_params": states["sampling_params"],
            "extra_logs": {"turns": torch.tensor(float(self.turns))},
        }


class AgentExecutor(MultiTurnAgentExecutor):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(Environment)
