"""In place of vLLM: an engine that takes its time, then says as many tokens as chance has it."""

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

__version__ = "0.29.0"

TOKEN_SECONDS = 0.02
FIRST, LAST = 3, 12
"""Ids of the tokens it says: digits."""
END = 1


class SamplingParams:
    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


class AsyncEngineArgs:
    def __init__(self, *args: Any, **settings: Any) -> None:
        pass


class AsyncLLMEngine:
    """What OpenRLHF uses of the real one."""

    def __init__(self) -> None:
        self.output_processor = self
        self._unfinished = 0

    @classmethod
    def from_engine_args(cls, args: AsyncEngineArgs) -> "AsyncLLMEngine":
        return cls()

    def get_num_unfinished_requests(self) -> int:
        return self._unfinished

    async def generate(self, prompt: Any, params: Any, request_id: str) -> AsyncIterator[Any]:
        self._unfinished += 1
        began = time.perf_counter()
        number = random.randint(1, min(4, params.max_tokens - 1))
        await asyncio.sleep(number * TOKEN_SECONDS)
        tokens = [random.randint(FIRST, LAST) for _ in range(number)]
        reason = random.choice(["length", "stop"])
        if reason == "stop":
            tokens.append(END)
        self._unfinished -= 1
        with (Path(os.environ["RUN_FOLDER"]) / "worked.jsonl").open("a") as file:
            seconds = time.perf_counter() - began
            file.write(json.dumps({"what": "generate", "seconds": seconds, "tokens": len(tokens)}) + "\n")
        logprobs = [{token: SimpleNamespace(logprob=-0.5)} for token in tokens]
        text = "".join(str(token - FIRST) for token in tokens if token != END)
        output = SimpleNamespace(token_ids=tokens, text=text, finish_reason=reason, logprobs=logprobs)
        yield SimpleNamespace(outputs=[output])

    async def collective_rpc(self, method: str, args: Any = ()) -> None:
        pass

    async def nothing(self, *args: Any, **settings: Any) -> None:
        pass

    is_sleeping = sleep = wake_up = reset_prefix_cache = pause_generation = resume_generation = nothing
