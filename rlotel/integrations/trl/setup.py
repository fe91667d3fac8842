"""What a trainer says of the run and of its phases: names, batch sizes, GPUs, the model's architecture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rlotel.derived import Hardware
from rlotel.flops import Architecture, UnknownArchitecture, peak_flops, read_config
from rlotel.integrations.configuration import checkpoint_tier, model_name
from rlotel.integrations.loops import Setup
from rlotel.integrations.trl.tables import TAG
from rlotel.semconv.attributes import Role
from rlotel.words import TRAIN


def is_trl(trainer: Any) -> bool:
    """Whether a trainer of transformers is one of TRL's."""
    return TAG in _tags(trainer)


def algorithm(trainer: Any) -> str | None:
    """Its algorithm, as its models are tagged with it."""
    return next((str(tag) for tag in _tags(trainer) if tag != TAG), None)


def _tags(trainer: Any) -> Sequence[str]:
    """Those of TRL's own that it is made of: a user's own trainer may tag its models otherwise."""
    several = (vars(kind).get("_tag_names") or () for kind in type(trainer).__mro__)
    return next((tags for tags in several if TAG in tags), ())


def is_asynchronous(trainer: Any) -> bool:
    """Whether another process makes the rollouts, and this one waits for them."""
    return hasattr(trainer, "rollout_queue")


def identity(trainer: Any) -> dict[str, str | None]:
    """Who the telemetry is about, for `Recorder.identify`."""
    return {
        "system": "trl",
        "system_version": getattr(sys.modules.get("trl"), "__version__", None),
        "algorithm": algorithm(trainer),
        "model": model_name(getattr(_config(trainer), "_name_or_path", None)),
        "environment": _environment(trainer),
    }


def hardware(trainer: Any) -> Hardware:
    """The GPUs: one for each rank. A server that makes the rollouts has others, which are not known here."""
    if not _has_gpu(trainer):
        return Hardware()
    gpus = trainer.accelerator.num_processes
    peak = peak_flops(sys.modules["torch"].cuda.get_device_name(trainer.accelerator.device))
    if _is_served(trainer):
        return Hardware(peak_flops=peak, gpus_of={TRAIN: gpus})
    return Hardware(gpus=gpus, peak_flops=peak)


def gpu_role(trainer: Any) -> Role | None:
    """What this rank's GPU is used for, if it has one."""
    if not _has_gpu(trainer):
        return None
    return Role.TRAINER if _is_served(trainer) or not hasattr(trainer, "_generate") else Role.SHARED


def _has_gpu(trainer: Any) -> bool:
    return bool(trainer.accelerator.device.type == "cuda")


def _is_served(trainer: Any) -> bool:
    """Whether rollouts are made on other GPUs than those of the ranks."""
    server = getattr(trainer, "use_vllm", False) and getattr(trainer, "vllm_mode", None) == "server"
    return bool(server) or is_asynchronous(trainer)


def setup(trainer: Any) -> Setup:
    """What its configuration says of the phases."""
    args = trainer.args
    vllm = getattr(trainer, "use_vllm", False) or is_asynchronous(trainer)
    return Setup(
        sample_batch_size=getattr(args, "generation_batch_size", None),
        train_batch_size=args.train_batch_size * args.gradient_accumulation_steps * args.world_size,
        sync_destination="vllm" if vllm else None,
        checkpoint_tier=checkpoint_tier(args.output_dir),
    )


def architecture(trainer: Any) -> Architecture | None:
    """That of the model; None for one of an unknown family, or whose adapters are trained instead of it."""
    if hasattr(trainer.model, "peft_config"):
        return None
    try:
        return read_config(_config(trainer))
    except UnknownArchitecture:
        return None


def _config(trainer: Any) -> Any:
    """The model's; None where a user's own model has none."""
    return getattr(trainer.model, "config", None)


def _environment(trainer: Any) -> str | None:
    """The class of the environments, or the data set that the prompts are from."""
    factories = getattr(trainer, "environment_factories", None) or {}
    names = {getattr(factory, "__name__", None) for factory in factories.values()}
    if len(names) == 1 and (name := names.pop()) is not None:
        return str(name)
    info = getattr(getattr(trainer, "train_dataset", None), "info", None)
    name = getattr(info, "dataset_name", None)
    # A file that is no part of a data set is named for its format.
    return str(name) if name and name != getattr(info, "builder_name", None) else None
