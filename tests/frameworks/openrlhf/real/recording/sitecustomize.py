"""On the path of a real run, this writes down what a trainer and its generator call, for `traces/`.

An event is when it was (seconds), call, return or raise, of what, and what is read of it. One file a process.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wrapt

BEGAN, BEGAN_NS = time.perf_counter(), time.time_ns()
MAKER = "openrlhf.trainer.ppo_utils.experience_maker:RemoteExperienceMaker."
GENERATOR = "openrlhf.trainer.ppo_utils.samples_generator:SamplesGenerator."
TRAINER = "openrlhf.trainer.ppo_trainer:BasePPOTrainer."
GROUP = "openrlhf.trainer.ray.launcher:RayActorGroup."
QUEUE = "ray.util.queue:Queue."
GROUPS = ("actor_model_group", "critic_model_group", "reward_model_group", "reference_model_group")
HOLDERS = (*GROUPS, "initial_model_group")

Encode = Callable[[Any, Any], dict[str, Any]]
met: dict[str, Any] = {}


def write(kind: str, name: str, data: dict[str, Any]) -> None:
    line = json.dumps([round(time.perf_counter() - BEGAN, 6), kind, name, data], default=str)
    with (Path(os.environ["RUN_FOLDER"]) / f"trace-{os.getpid()}.jsonl").open("a") as file:
        file.write(line + "\n")


def rollouts(found: Any) -> list[list[Any]]:
    """Of each the tokens given and generated, its reward, its turns and when it was made."""
    rows = []
    for one in found:
        generated, made = int(one.action_mask.sum()), vars(one).get("rlotel_made")
        reward = None if one.rewards is None else float(one.rewards.sum())
        when = None if made is None else (made - BEGAN_NS) / 1e9
        rows.append([int(one.total_length) - generated, generated, reward, vars(one).get("rlotel_turns"), when])
    return rows


def role(group: Any, holder: Any) -> str | None:
    return next((name for name in HOLDERS if getattr(holder, name, None) is group), None)


def arguments(args: Any) -> Any:
    return {name: arguments(value) for name, value in vars(args).items()} if hasattr(args, "__dict__") else args


def made(instance: Any, values: dict[str, Any]) -> dict[str, Any]:
    met["trainer"] = instance
    return {"args": arguments(values["strategy"].args), "critic": values.get("critic_model_group") is not None}


def payload(item: Any) -> dict[str, Any]:
    if isinstance(item, (str, int)):
        return {"item": item}
    kind = (
        "eval" if isinstance(item, tuple) and item[0] == "eval" else "rollouts" if isinstance(item, tuple) else ""
    )
    return {"item": kind}


def generated(instance: Any, result: Any) -> dict[str, Any]:
    found, _, consumed, exhausted = result
    return {
        "rollouts": rollouts(found),
        "consumed": consumed,
        "exhausted": exhausted,
        "buffer": rollouts(instance._sample_buffer),
        "more": instance._dataloader_iter is not None,
    }


def nothing(instance: Any, values: Any) -> dict[str, Any]:
    return {}


def queue(instance: Any, values: Any) -> dict[str, Any]:
    return {"rollouts": instance is getattr(met.get("trainer"), "rollout_queue", None)}


WATCHED: dict[str, tuple[Encode, Encode]] = {
    f"{TRAINER}__init__": (made, nothing),
    f"{TRAINER}init_checkpoint_states": (
        nothing,
        lambda _, states: {"global_step": states["global_step"], "episode": states["episode"]},
    ),
    f"{TRAINER}train_step": (nothing, nothing),
    f"{TRAINER}ppo_train": (nothing, nothing),
    f"{TRAINER}broadcast_to_vllm": (nothing, nothing),
    f"{TRAINER}save_logs_and_checkpoints": (
        lambda _, values: {
            "global_step": values["global_step"],
            "logs": {k: v for k, v in values["logs_dict"].items() if isinstance(v, float)},
        },
        nothing,
    ),
    f"{TRAINER}save_best_checkpoint": (
        lambda _, values: {"scores": values["eval_metrics"], "global_step": values["global_step"]},
        nothing,
    ),
    f"{GENERATOR}__init__": (lambda _, values: {"args": arguments(values["strategy"].args)}, nothing),
    f"{GENERATOR}generate_samples": (nothing, generated),
    f"{GENERATOR}generate_eval_samples": (nothing, nothing),
    f"{MAKER}make_experience_batch": (
        lambda _, values: {"rollouts": rollouts(values["rollout_samples"])},
        nothing,
    ),
    f"{MAKER}_dispatch_forward": (
        lambda instance, values: {
            "group": role(values["group"], instance),
            "sync": bool(values["sync_condition"]),
        },
        lambda _, result: {"answer": id(result)},
    ),
    f"{MAKER}_flatten_results": (lambda _, values: {"answer": id(values["refs"])}, nothing),
    f"{MAKER}compute_advantages_and_returns": (nothing, nothing),
    f"{GROUP}async_run_method": (
        lambda instance, values: {"group": role(instance, met.get("trainer")), "method": values["method_name"]},
        nothing,
    ),
    f"{QUEUE}get": (queue, lambda _, result: payload(result)),
    f"{QUEUE}put": (lambda _, values: payload(values["item"]), nothing),
}


def watch(target: str, encode: tuple[Encode, Encode]) -> None:
    import inspect

    module, _, path = target.partition(":")
    kind, _, name = path.partition(".")

    def wrap(found: Any) -> None:
        owner = getattr(found, kind)
        signature = inspect.signature(inspect.unwrap(getattr(owner, name)))

        def called(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            bound = signature.bind(instance, *args, **kwargs)
            bound.apply_defaults()
            write("call", path, encode[0](instance, bound.arguments))
            try:
                result = wrapped(*args, **kwargs)
            except BaseException as error:
                write("raise", path, {"error": type(error).__name__})
                raise
            write("return", path, encode[1](instance, result))
            return result

        setattr(owner, name, wrapt.FunctionWrapper(owner.__dict__[name], called))

    wrapt.register_post_import_hook(wrap, module)


if any(argument.endswith("default_worker.py") for argument in sys.orig_argv):
    for watched, how in WATCHED.items():
        watch(watched, how)
