"""Rewards of GSM8K for OpenRLHF: 1 where the last number of the answer is the right one."""

import re
from typing import Any

import torch

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def last_number(text: str) -> str | None:
    """The last number in a text, without its commas."""
    found = NUMBER.findall(text)
    return found[-1].replace(",", "") if found else None


def reward_func(queries: list[str], prompts: list[str], labels: list[str]) -> dict[str, Any]:
    """What OpenRLHF calls with prompts and their answers in one text each."""
    right = [
        float(last_number(query[len(prompt) :]) == last_number(label))
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    return {"rewards": torch.tensor(right), "scores": torch.tensor(right)}
