"""GRPO with a tool and an engine that makes the rollouts, which is played here: two iterations of 16 rollouts.

Every second rollout calls the tool once, so that it has two turns.
"""

import time
from typing import Any

import tiny  # type: ignore[import-not-found]
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template
from trl.generation.vllm_generation import VLLMGeneration

import rlotel

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 3, "b": 4}}\n</tool_call><|im_end|>'
ANSWER = "7<|im_end|>"


class Server:
    """Does what TRL asks a vLLM server for."""

    def get_server_info(self) -> dict[str, Any]:
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def update_named_params(self, metadata: Any, parameters: Any) -> None:
        with tiny.working("sync"):
            time.sleep(0.02)
            assert len(list(parameters)) == len(metadata)

    def reset_prefix_cache(self) -> None: ...

    def generate(self, prompts: list[list[int]], n: int, **_: Any) -> dict[str, Any]:
        with tiny.working("turn"):
            time.sleep(0.02)
        texts = [
            ANSWER if "tool_response" in words.decode(prompt) else (CALL, ANSWER)[number % 2]
            for prompt in prompts
            for number in range(n)
        ]
        completions = [words(text)["input_ids"] for text in texts]
        logprobs = [[[-4.0] for _ in ids] for ids in completions]
        return {"prompt_ids": prompts, "completion_ids": completions, "logprobs": logprobs}


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One number.
        b: The other number.

    Returns:
        Their sum.
    """
    with tiny.working("tool"):
        time.sleep(0.005)
        return a + b


def right(completions: list[list[dict[str, Any]]], **_: Any) -> list[float]:
    """Whether the last word is right."""
    return [float("7" in messages[-1]["content"]) for messages in completions]


VLLMGeneration._init_vllm = lambda self: setattr(self, "vllm_client", Server())
rlotel.instrument()
words = tiny.tokenizer()
words.chat_template = qwen3_chat_template
tiny.record_timers()
trainer = GRPOTrainer(
    model=tiny.model(words),
    reward_funcs=[right],
    args=GRPOConfig(
        **tiny.rollouts(
            "checkpoints", max_steps=2, use_vllm=True, vllm_mode="server", max_completion_length=512, beta=0.02
        )
    ),
    train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": "3+4="}]}] * 16),
    processing_class=words,
    tools=[add],
    callbacks=[tiny.Record()],
)
trainer.train()
