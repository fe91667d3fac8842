"""What SkyRL's trainers run on here: engines and workers that only pass time, and prompts that are sums.

Everything else is SkyRL's own: the trainers, the generator, skyrl-gym, timers, checkpoints and logging. What it
logs is written to `logged.jsonl`, and what each kind of work took by a clock of our own to `worked.jsonl`.
"""

import asyncio
import functools
import itertools
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import older  # type: ignore[import-not-found]  # noqa: F401 - before SkyRL
import skyrl.train.trainer
import skyrl_gym
import torch
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.fully_async_trainer import FullyAsyncRayPPOTrainer
from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
from skyrl.train.trainer import RayPPOTrainer
from skyrl.train.utils.tracking import Tracking
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

FOLDER = Path(os.environ.get("RUN_FOLDER", "."))
MODEL = FOLDER / "tiny-qwen2"
ARCHITECTURE = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 18,
    "tie_word_embeddings": True,
}
ITERATIONS = int(os.environ.get("ITERATIONS", "3"))
CHARACTERS = "0123456789+-=? "

_writing = threading.Lock()


def write(file: str, line: dict[str, Any]) -> None:
    with _writing, (FOLDER / file).open("a") as lines:
        lines.write(json.dumps(line) + "\n")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Write down how long a kind of work took."""
    began = time.perf_counter()
    try:
        yield
    finally:
        write("worked.jsonl", {"what": what, "seconds": time.perf_counter() - began})


def tokenizer() -> Any:
    """One token a character."""
    vocabulary = {token: index for index, token in enumerate(("<pad>", "<eos>", "<unk>", *CHARACTERS))}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Split("", behavior="isolated")
    plain.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    made.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    # What it does unless it is told otherwise depends on the release of Transformers; 0.1 does not tell it.
    made.apply_chat_template = functools.partial(made.apply_chat_template, return_dict=False)
    return made


class BrokenEnvironment(Exception):
    """What an environment fails with."""


class BrokenUpdate(Exception):
    """What an update fails with."""


class Add(BaseTextEnv):  # type: ignore[misc]
    """A sum. The first answer is looked up in a table, the second is judged."""

    left: ClassVar = itertools.count()
    """How many steps can still be taken by all of them; it fails once they have run out."""

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.answer = (extras or {})["answer"]
        self.max_turns = (extras or {})["max_turns"]

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        if next(self.left, None) is None:
            raise BrokenEnvironment("no more steps")
        done = self.turns >= self.max_turns
        with timed("reward" if done else "tool"):
            time.sleep(0.004 if done else 0.002)
        said = [] if done else [{"role": "user", "content": "?"}]
        return BaseTextEnvStepOutput(
            observations=said, reward=float(self.answer in action) if done else 0.0, done=done, metadata={}
        )

    def get_metrics(self) -> dict[str, float]:
        return {"turns": float(self.turns)}


skyrl_gym.register(id="add", entry_point=Add)


class Prompts(list[Any]):
    """As many sums as there are pairs of digits."""

    def __init__(self, count: int) -> None:
        super().__init__(range(count))

    def __getitem__(self, index: Any) -> Any:
        one, other = divmod(index, 10)
        extras = {"answer": str(one + other), "data_source": "sums"}
        return [{"role": "user", "content": f"{one}+{other}="}], "add", extras, str(index)

    @staticmethod
    def collate_fn(items: list[Any]) -> list[dict[str, Any]]:
        names = ("prompt", "env_class", "env_extras", "uid")
        return [dict(zip(names, item, strict=True)) for item in items]


class Engine:
    """In place of the client of vLLM servers."""

    weight_version = 0

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._asked: Counter[str] = Counter()

    async def generate(self, asked: Any, model: str | None = None) -> dict[str, Any]:
        prompt = str(asked["prompt_token_ids"])
        self._asked[prompt] += 1
        # The same answers to the same prompts, in whatever order a busy machine asks for them.
        chance = random.Random(f"a {prompt} {self._asked[prompt]}")
        await asyncio.sleep(0.02 + 0.03 * chance.random())
        count = chance.randint(1, 6)
        ids = [*(chance.randint(3, 12) for _ in range(count)), 1]
        return {
            "responses": [self._tokenizer.decode(ids[:-1])],
            "response_ids": [ids],
            "stop_reasons": ["length" if count == 6 else "stop"],
            "response_logprobs": [[-1.0] * len(ids)],
        }

    async def sleep(self, **_: Any) -> None:
        """Nothing has memory to give back."""

    wake_up = pause_generation = resume_generation = sleep

    async def finish_session(self, session: str) -> None:
        """There are no sessions."""

    def increment_weight_version(self) -> None:
        self.weight_version += 1


class Output(dict[str, Any]):
    """What workers answer: `WorkerOutput` from 0.3 on, a dict before."""

    def __init__(self, values: dict[str, Any], outputs: list[Any] | None = None) -> None:
        super().__init__(values)
        self.loss_fn_outputs = outputs or []

    @property
    def metrics(self) -> dict[str, Any]:
        return self


class Dispatch:
    """In place of what calls the workers."""

    left: ClassVar = itertools.count()
    """How many mini-batches all of them can still be trained on."""

    def __init__(self, engine: Engine, *, learns_kl: bool) -> None:
        self._engine = engine
        self._learns_kl = learns_kl
        self.steps = {"policy": 0, "critic": 0}

    def get_lcm_dp_size(self) -> int:
        return 1

    def get_node_ids(self) -> list[str]:
        return ["here"]

    def init_weight_sync_state(self, client: Any) -> None:
        """The engine is here."""

    async def save_weights_for_sampler(self, model_id: str | None = None) -> None:
        with timed("sync"):
            await asyncio.sleep(0.03)
        self._engine.increment_weight_version()

    def stage_data(self, model: Any, data: Any = None, boundaries: Any = None) -> Any:
        if boundaries is None:  # 0.1: the batch alone
            return model
        return [data[begin:end] for begin, end in boundaries]

    def forward_from_staged(self, model: str, data: Any) -> Output:
        return self.forward(model, data)

    def forward(self, model: str, data: Any) -> Output:
        with timed(f"forward {model}"):
            time.sleep(0.01)
        key, width = "values" if model == "critic" else "logprobs", data.metadata["response_length"]
        rows = [{key: [-1.1] * width} for _ in range(len(data))]
        return Output({"output": torch.full((len(data), width), -1.1)}, rows)

    def forward_backward_from_staged(self, model: str, data: Any, *_: int) -> Output:
        if next(self.left, None) is None:
            raise BrokenUpdate("no more updates")
        with timed(f"train {model}"):
            time.sleep(0.02)
        loss = 1.0 / (1 + self.steps[model])
        if model == "critic":
            metrics = {"critic_loss": loss, "values_mean": 0.2, "values_clipfrac": 0.125, "critic_lr": 5e-6}
        else:
            metrics = {
                "final_loss": loss + 0.01,
                "policy_loss": loss,
                "policy_entropy": 2.0 - loss,
                "policy_lr": 1e-6,
                "response_length": 7,
                "loss_metrics/clip_ratio": 0.0625,
                **({"policy_kl": 0.001 * loss} if self._learns_kl else {}),
            }
        return Output(metrics)

    def optim_step(self, model: str) -> float:
        self.steps[model] += 1
        return 0.5 if model == "policy" else 0.25

    def empty_cache(self, model: str | None = None) -> None:
        """There is no cache."""

    def save_checkpoint(self, model: str, folder: str, tokenizer: Any = None) -> None:
        with timed("save"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            time.sleep(0.02)

    def finalize_pending_saves(self, model: str) -> None:
        """None is pending."""

    def save_hf_model(self, model: str, folder: str, tokenizer: Any) -> None:
        with timed("export"):
            time.sleep(0.01)

    def load_checkpoint(self, model: str, folder: str, **_: Any) -> None:
        with timed("load"):
            time.sleep(0.02)


class Policy:
    """In place of the group of actors by which weights are sent, asynchronously and before 0.3."""

    async def async_run_method(self, *_: Any, **__: Any) -> None:
        with timed("sync"):
            await asyncio.sleep(0.03)


class Logger:
    """Takes what SkyRL logs, in place of a console."""

    def log(self, data: dict[str, Any], step: int) -> None:
        write("logged.jsonl", {"step": step, "data": data})


def configuration(*overrides: str) -> SkyRLTrainConfig:
    """A small run: four prompts with two rollouts each an iteration; each override is `path=value`."""
    MODEL.mkdir(parents=True, exist_ok=True)
    (MODEL / "config.json").write_text(json.dumps(ARCHITECTURE))
    settings = {
        "trainer.policy.model.path": MODEL,
        "trainer.train_batch_size": 4,
        "trainer.policy_mini_batch_size": 2,
        "trainer.critic_mini_batch_size": 2,
        "trainer.update_epochs_per_batch": 2,
        "trainer.eval_batch_size": 4,
        "trainer.epochs": 4 if knows("trainer.max_training_steps") else 1,
        "trainer.max_training_steps": ITERATIONS,
        "trainer.resume_mode": "none",
        "trainer.ckpt_interval": 2,
        "trainer.eval_interval": 2,
        "trainer.eval_before_train": True,
        "trainer.logger": "console",
        "trainer.ckpt_path": FOLDER / "checkpoints",
        "trainer.export_path": FOLDER / "exports",
        "trainer.enable_ray_gpu_monitor": False,
        "trainer.dump_eval_results": False,
        "trainer.print_example_interval": 0,
        "trainer.placement.colocate_all": False,
        "trainer.algorithm.advantage_estimator": "grpo",
        "trainer.algorithm.use_kl_loss": False,
        "environment.env_class": "add",
        "environment.skyrl_gym.max_env_workers": 4,
        "generator.n_samples_per_prompt": 2,
        "generator.batched": False,
        "generator.max_turns": 2,
        "generator.inference_engine.enable_ray_prometheus_stats": False,
        "data.dataloader.num_workers": 0,
        "generator.inference_engine.enable_http_endpoint": True,  # before 0.3: no workers to load data
    }
    known = {path: str(value) for path, value in settings.items() if knows(path)}
    given = dict(override.split("=", 1) for override in overrides)
    return SkyRLTrainConfig.from_cli_overrides([f"{path}={value}" for path, value in {**known, **given}.items()])


def knows(path: str) -> bool:
    """Whether this release has such a setting."""
    found: Any = SkyRLTrainConfig()
    for name in path.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def tracking(cfg: SkyRLTrainConfig) -> Tracking:
    tracker = Tracking("project", "run", "console", config=cfg)
    take(tracker, Logger())
    return tracker


def take(tracker: Tracking, logger: object) -> None:
    """Let a logger of ours have what is logged; before 0.3 there could be several."""
    tracker.logger = {"console": logger} if isinstance(tracker.logger, dict) else logger


def equip(trainer: RayPPOTrainer, engine: Engine) -> RayPPOTrainer:
    """Give a trainer what `build_models` would."""
    algorithm = trainer.cfg.trainer.algorithm
    trainer.dispatch = Dispatch(engine, learns_kl=algorithm.use_kl_loss)
    trainer.policy_model = Policy()
    trainer.ref_model = object() if algorithm.use_kl_loss or algorithm.use_kl_in_reward else None
    skyrl.train.trainer.run_on_each_node = lambda *_: None
    return trainer


def make(cfg: SkyRLTrainConfig, kind: str = "sync") -> RayPPOTrainer:
    """A trainer, `sync` or `async`."""
    words = tokenizer()
    engine = Engine(words)
    prompts = 32 if knows("trainer.max_training_steps") else ITERATIONS * cfg.trainer.train_batch_size
    trainer = (FullyAsyncRayPPOTrainer if kind == "async" else RayPPOTrainer)(
        cfg=cfg,
        tracker=tracking(cfg),
        tokenizer=words,
        train_dataset=Prompts(prompts),
        eval_dataset=Prompts(8),
        inference_engine_client=engine,
        generator=SkyRLGymGenerator(cfg.generator, cfg.environment.skyrl_gym, engine, words),
    )
    return equip(trainer, engine)


ASYNCHRONOUS = (
    *(("trainer.fully_async.enabled=true",) if knows("trainer.fully_async.enabled") else ()),
    "trainer.fully_async.num_parallel_generation_workers=4",
    "trainer.fully_async.max_staleness_steps=2",
    "trainer.train_batch_size=2",
    "trainer.algorithm.policy_loss_type=rollout_is",
)
"""What makes a run fully asynchronous."""
