"""An agent loop in place of one that asks a model: 50 ms, then as many tokens as chance has it."""

import asyncio
from typing import Any

import common  # type: ignore[import-not-found]
from verl.experimental.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, register
from verl.utils.profiler import simple_timer


@register("made_up")
class MadeUp(AgentLoopBase):  # type: ignore[misc]
    def __init__(self, **settings: Any) -> None:
        pass  # neither tokenizer nor chat template is needed

    async def run(self, sampling_params: dict[str, Any], **prompt: Any) -> Any:
        timing: dict[str, float] = {}
        with simple_timer("generate_sequences", timing):
            await asyncio.sleep(0.05)
        with simple_timer("tool_calls", timing):
            await asyncio.sleep(0.01)
        (asked,), (answered,) = common.lengths(1)
        step = max(int(prompt["global_steps"]) - 1, 0)
        return AgentLoopOutput(
            prompt_ids=[5] * int(asked),
            response_ids=[6] * int(answered),
            response_mask=[1] * int(answered),
            response_logprobs=[-0.3] * int(answered),
            num_turns=2,
            metrics=AgentLoopMetrics(**timing),
            extra_fields={"min_global_steps": step, "max_global_steps": step},
        )
