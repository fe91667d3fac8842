"""What all programs share: a tiny model and tokenizer, prompts, rewards, and a record of what TRL measured."""

import json
import os
import string
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, load_dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, TrainerCallback
from trl.extras import profiling

OUT = Path(os.environ.get("RUN_FOLDER", "."))
RANK = int(os.environ.get("RANK", "0"))
SPECIAL = ("<pad>", "<|im_end|>", "<unk>", "<|im_start|>")
ROWS = 8
"""Rollouts of one rank in one micro-batch."""


def write(name: str, line: dict[str, Any]) -> None:
    """Add a line to what this rank writes down."""
    with (OUT / (f"{name}.jsonl" if RANK == 0 else f"{name}-{RANK}.jsonl")).open("a") as file:
        file.write(json.dumps(line) + "\n")


@contextmanager
def working(what: str) -> Iterator[None]:
    """Take the time of a kind of work."""
    began = time.perf_counter()
    try:
        yield
    finally:
        write("worked", {"what": what, "seconds": time.perf_counter() - began})


def record_timers() -> None:
    """Write down what TRL's own timers measured, which it sends to experiment trackers alone."""
    leave = profiling.ProfilingContext._log_metrics

    def log(self: Any, duration: float) -> None:
        write("timed", {"name": self.name.partition(".")[2], "seconds": duration, "ended_ns": time.time_ns()})
        leave(self, duration)

    profiling.ProfilingContext._log_metrics = log


class Record(TrainerCallback):  # type: ignore[misc]  # transformers is not installed where this is checked
    """Writes down what was logged, and how long each step took as a callback sees it."""

    def __init__(self) -> None:
        self.began = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.began = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        write("steps", {"step": state.global_step, "seconds": time.perf_counter() - self.began})

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        write("logged", {"step": state.global_step, **logs})


def tokenizer() -> PreTrainedTokenizerFast:
    """One token for each printable character."""
    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *string.printable))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split("", behavior="isolated")
    made.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="<|im_end|>",
        unk_token="<unk>",
        additional_special_tokens=list(SPECIAL[3:]),
        padding_side="left",
    )


def model(words: PreTrainedTokenizerFast, **settings: Any) -> Qwen2ForCausalLM:
    """A random model of two layers, saved where a reference model can be loaded from."""
    torch.manual_seed(0)
    made = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(words),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=2048,
            pad_token_id=words.pad_token_id,
            eos_token_id=words.eos_token_id,
            bos_token_id=None,
            **settings,
        )
    )
    folder = OUT / f"tiny-qwen2-{RANK}" / "tiny-qwen2"
    made.save_pretrained(folder)
    words.save_pretrained(folder)
    made.config._name_or_path = str(folder)
    return made


def prompts(number: int = 64, name: str = "sums") -> Dataset:
    """Sums of two digits, as a data set that was loaded from files."""
    folder = OUT / f"{name}-{RANK}" / name
    folder.mkdir(parents=True, exist_ok=True)
    sums = [(a, b) for a in range(8) for b in range(8)][:number]
    rows = [json.dumps({"prompt": f"{a}+{b}=", "answer": str(a + b)}) for a, b in sums]
    (folder / "train.jsonl").write_text("\n".join(rows))
    return load_dataset(str(folder), split="train", cache_dir=str(OUT / f"cache-{RANK}"))


def exact(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Whether the answer is right."""
    return [float(completion.strip() == right) for completion, right in zip(completions, answer, strict=True)]


def digits(completions: list[str], **_: Any) -> list[float]:
    """How much of the answer is digits."""
    return [sum(map(str.isdigit, completion)) / max(1, len(completion)) for completion in completions]


def settings(folder: str, **more: Any) -> dict[str, Any]:
    """Settings of a small run on the CPU."""
    return {
        "output_dir": str(OUT / folder),
        "report_to": "none",
        "per_device_train_batch_size": ROWS,
        "gradient_accumulation_steps": 2,
        "logging_steps": 1,
        "save_strategy": "no",
        "learning_rate": 1e-3,
        "use_cpu": True,
        "seed": 0,
        "disable_tqdm": True,
        **more,
    }


def rollouts(folder: str, **more: Any) -> dict[str, Any]:
    """The same, of a trainer that makes rollouts."""
    return settings(
        folder, **{"num_generations": 4, "max_completion_length": 8, "beta": 0.0, "bf16": False, **more}
    )
