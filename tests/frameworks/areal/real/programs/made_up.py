"""Stand-ins for what needs GPUs: a model of two layers that is trained, an engine that makes up rollouts."""

import asyncio
import json
import os
import random
import sys
import time
import types
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from areal.api import LocalInfServerInfo, ModelResponse
from areal.api.cli_args import InferenceEngineConfig, PPOActorConfig, PPOCriticConfig
from areal.infra.remote_inf_engine import RemoteInfEngine
from areal.infra.rpc.rtensor import RTensor
from areal.infra.workflow_executor import WorkflowExecutor
from areal.trainer.ppo.actor import PPOActor
from areal.trainer.ppo.critic import PPOCritic
from areal.utils import logging, stats_tracker
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

# Saving asks whether this is the engine, which can't be imported without Triton.
ARCHON = "areal.experimental.engine.archon_engine"
sys.modules[ARCHON] = types.ModuleType(ARCHON)
sys.modules[ARCHON].ArchonEngine = type("ArchonEngine", (), {})  # type: ignore[attr-defined]

FOLDER = Path(os.environ["RUN_FOLDER"])
WORDS = 32
PAD, EOS = WORDS - 2, WORDS - 1
DEVICE_STATS = type("DeviceStats", (), {"log": lambda *_: None})()


def tokenizer(folder: Path) -> str:
    """A tokenizer that knows `WORDS` words, in a folder."""
    vocabulary = {f"w{number}": number for number in range(WORDS - 2)} | {"<pad>": PAD, "<eos>": EOS}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>")
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    made.save_pretrained(folder)
    return str(folder)


class Engine:
    """What AReaL asks of an engine that trains, on a model of two layers."""

    data_parallel_rank = int(os.environ.get("RANK", "0"))
    data_parallel_world_size = int(os.environ.get("WORLD_SIZE", "1"))
    cpu_group = None
    """All ranks."""
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer

    def __init__(self, outputs: int) -> None:
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Embedding(WORDS, 16), torch.nn.Linear(16, outputs))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.version = 0
        self.step_fails_at = int(os.environ.get("STEP_FAILS_AT", "-1"))
        self.steps = 0

    def train(self) -> None:
        self.model.train()

    def eval(self) -> None:
        self.model.eval()

    def get_version(self) -> int:
        return self.version

    def set_version(self, version: int) -> None:
        self.version = version

    def log_probabilities(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.model(batch["input_ids"].long()).log_softmax(-1)
        following = torch.roll(batch["input_ids"].long(), -1, -1)
        return scores.gather(-1, following[..., None])[..., 0], -(scores.exp() * scores).sum(-1)

    def forward(self, input_: dict[str, Any], aggregate_fn: Any) -> torch.Tensor:
        with torch.no_grad():
            return self.log_probabilities(input_)[0]

    def train_batch(self, input_: dict[str, Any], loss_fn: Any, loss_weight_fn: Any) -> dict[str, float]:
        self.optimizer.zero_grad()
        loss_fn(*self.outputs(input_), input_).backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0))
        self.steps += 1
        if self.steps == self.step_fails_at:
            raise RuntimeError("the optimizer is out of memory")
        self.optimizer.step()
        return {"update_successful": 1.0, "grad_norm": norm, "lr": 0.1}

    def outputs(self, batch: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        return self.log_probabilities(batch)

    def get_device_stats(self) -> Any:
        return DEVICE_STATS

    def step_lr_scheduler(self) -> None:
        """It never changes."""

    def initialize(self, **_: Any) -> None:
        """Nothing to load."""

    def connect_engine(self, engine: "Rollouts", meta: Any) -> None:
        self.rollouts = engine

    def update_weights(self, meta: Any) -> None:
        time.sleep(0.005)

    def prepare_batch(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        batch: list[dict[str, Any]] = RTensor.localize(self.rollouts.prepare_batch(*args, **kwargs))
        return batch

    def is_data_parallel_head(self) -> bool:
        return True

    def clear_batches(self, *_: Any) -> None:
        """All is in this process."""

    def export_stats(self) -> dict[str, float]:
        group = dist.group.WORLD if dist.is_initialized() else None
        stats: dict[str, float] = stats_tracker.export_all(reduce_group=group)
        return stats

    def save(self, meta: Any) -> None:
        started = time.perf_counter()
        torch.save(self.model.state_dict(), Path(meta.path) / "model.pt")
        note("worked.jsonl", what="save", seconds=time.perf_counter() - started)

    def load(self, meta: Any) -> None:
        self.model.load_state_dict(torch.load(Path(meta.path) / "model.pt"))

    def save_perf_tracer(self, **_: Any) -> None:
        """It is not asked for."""

    def destroy(self) -> None:
        """Nothing is held."""


class Actor(Engine, PPOActor):  # type: ignore[misc]
    """The policy: AReaL's own losses and statistics on that model."""

    def __init__(self, config: PPOActorConfig) -> None:
        Engine.__init__(self, WORDS)
        PPOActor.__init__(self, config, self)


class Critic(Engine, PPOCritic):  # type: ignore[misc]
    """The critic."""

    def __init__(self, config: PPOCriticConfig) -> None:
        Engine.__init__(self, 1)
        PPOCritic.__init__(self, config, self)

    def outputs(self, batch: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        return (self.model(batch["input_ids"].long()),)

    def forward(self, input_: dict[str, Any], aggregate_fn: Any) -> torch.Tensor:
        with torch.no_grad():
            return self.model(input_["input_ids"].long())[..., 0]


class Rollouts(RemoteInfEngine):  # type: ignore[misc]
    """AReaL's own client, workflow executor and staleness control; the server is made up."""

    def __init__(self, config: InferenceEngineConfig) -> None:
        super().__init__(config, backend=None)
        logging.getLogger("Rollouts").info("made in process %s", os.getpid())
        self.randomness = random.Random(1)

    def initialize(self, *_: Any, **__: Any) -> None:
        self.logger = logging.getLogger("Rollouts")
        self.workflow_executor = WorkflowExecutor(config=self.config, inference_engine=self)
        self.workflow_executor.initialize(
            logger=self.logger, train_data_parallel_size=Engine.data_parallel_world_size
        )
        self._initialized = True

    def launch_server(self, server_args: dict[str, Any]) -> LocalInfServerInfo:
        return LocalInfServerInfo(host="127.0.0.1", port=0, process=None)

    async def agenerate(self, req: Any) -> ModelResponse:
        length = self.randomness.randint(2, 6)
        await asyncio.sleep(0.004 * length)
        return ModelResponse(
            input_tokens=list(req.input_ids),
            output_tokens=[self.randomness.randrange(WORDS - 2) for _ in range(length - 1)] + [EOS],
            output_logprobs=[-3.0] * length,
            output_versions=[self.get_version()] * length,
            stop_reason="stop",
            tokenizer=req.tokenizer,
        )

    @property
    def staleness_manager(self) -> Any:
        return self.workflow_executor.staleness_manager

    def export_stats(self) -> dict[str, float]:
        """AReaL's client keeps its numbers where the actor's are, which has told them."""
        return {} if dist.is_initialized() else stats_tracker.export_all()

    def save_perf_tracer(self, **_: Any) -> None:
        """It is not asked for."""

    def destroy(self) -> None:
        self.workflow_executor.destroy()


def note(file: str, **what: Any) -> None:
    """Write one line of what this program knows."""
    with (FOLDER / file).open("a") as out:
        out.write(json.dumps(what) + "\n")
