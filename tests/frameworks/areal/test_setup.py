"""What AReaL's configuration says of a run, and what its workers are told."""

import json
import os
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.testing import captured

from .conftest import Areal, settings, steps


def started(areal: Areal, config: Any) -> None:
    """A run of one iteration."""
    trainer = areal.trainer(config)
    body = steps(lambda: areal.time("rollout", 2.0), lambda: areal.commit(0, **{"ppo_actor/n_seqs": 16.0}))
    areal.play(train=lambda _: body())
    trainer.train()


def identity(areal: Areal) -> dict[str, Any]:
    (point,) = areal.telemetry.points("rl.loop.duration")
    names = ("rl.system", "rl.system.version", "rl.algorithm", "rl.model.name", "rl.environment.name")
    return {name: point.attributes[name] for name in names if name in point.attributes}


def test_a_run_says_who_it_is(areal: Areal) -> None:
    areal.module("version")
    started(areal, settings())
    assert identity(areal) == {
        "rl.system": "areal",
        "rl.system.version": "1.0.4",
        "rl.algorithm": "GRPO",
        "rl.model.name": "Qwen/Qwen3-8B",
        "rl.environment.name": "openai/gsm8k",
    }


def test_a_checkout_does_not_know_its_version(areal: Areal) -> None:
    areal.module("version").version_info.version = "0.0.0.dev"
    started(areal, settings(actor__path="/models/mine-7B/", train_dataset__path="/data/sums"))
    assert identity(areal) == {
        "rl.system": "areal",
        "rl.algorithm": "GRPO",
        "rl.model.name": "mine-7B",
        "rl.environment.name": "sums",
    }


class SFTConfig(SimpleNamespace):
    """As AReaL calls it."""


class MyConfig(SFTConfig):
    """A user's."""


@pytest.mark.parametrize(
    ("given", "algorithm"),
    [
        ({}, "GRPO"),
        ({"critic": SimpleNamespace(backend="fsdp:d1")}, "PPO"),
        ({"actor__use_sapo_loss": True}, "SAPO"),
        ({"actor__importance_sampling_level": "sequence"}, "GSPO"),
        ({"actor__importance_sampling_level": "token", "actor__m2_threshold": 0.04}, "M2PO"),
    ],
)
def test_the_algorithm_is_what_the_actor_is_trained_with(
    areal: Areal, given: dict[str, Any], algorithm: str
) -> None:
    started(areal, settings(**given))
    assert identity(areal)["rl.algorithm"] == algorithm


def test_trainers_without_rollouts_are_called_as_they_are(areal: Areal) -> None:
    started(areal, MyConfig(actor=SimpleNamespace(path="a/b")))
    assert identity(areal)["rl.algorithm"] == "SFT"


IDENTITY = {
    *("RLOTEL_SYSTEM", "RLOTEL_SYSTEM_VERSION", "RLOTEL_ALGORITHM"),
    *("RLOTEL_MODEL", "RLOTEL_ENVIRONMENT", "RLOTEL_ENVIRONMENT_TYPE"),
}
COLOCATED = SimpleNamespace(type="colocation", target="actor")


@pytest.mark.parametrize(
    ("given", "gpus"),
    [
        ({}, 8),
        ({"rollout__scheduling_strategy": COLOCATED}, 4),
        ({"critic": SimpleNamespace(backend="fsdp:d2")}, 10),
        ({"critic": SimpleNamespace(backend="fsdp:d2", scheduling_strategy=COLOCATED)}, 8),
        ({"ref": SimpleNamespace(backend="fsdp:d2")}, 8),
        ({"ref": SimpleNamespace(backend="fsdp:d2"), "actor__kl_ctl": 0.1}, 10),
        (
            {
                "teacher": SimpleNamespace(
                    engine_type="rollout", rollout=SimpleNamespace(backend="sglang:d1t4"), train=None
                )
            },
            12,
        ),
    ],
)
def test_gpus_are_those_of_all_allocations(areal: Areal, given: dict[str, Any], gpus: int) -> None:
    areal.module("api.alloc_mode")
    started(areal, settings(**given))
    assert areal.telemetry.value("rl.samples.rate_per_gpu") == pytest.approx(16.0 / 2.0 / gpus)


@pytest.mark.parametrize("backend", ["", "???", "fsdp"])
def test_gpus_are_unknown_where_one_allocation_is(areal: Areal, backend: str) -> None:
    areal.module("api.alloc_mode")
    started(areal, settings(rollout__backend=backend))
    assert areal.telemetry.value("rl.samples.rate") == 8.0
    assert areal.telemetry.points("rl.samples.rate_per_gpu") == []


def test_all_ranks_of_one_program_hold_the_models_that_are_trained(
    areal: Areal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AREAL_SPMD_MODE", "1")
    areal.module("api.alloc_mode")
    started(areal, settings(critic=SimpleNamespace(backend="fsdp:d4")))
    assert areal.telemetry.value("rl.samples.rate_per_gpu") == pytest.approx(1.0)
    assert "RLOTEL_DEFAULTS" not in os.environ


def test_workers_inherit_whose_they_are(areal: Areal) -> None:
    areal.module("version")
    seen: dict[str, str] = {}
    areal.play(made=lambda _: seen.update(os.environ))
    areal.module("trainer.rl_trainer").PPOTrainer(settings(), train_dataset=[])
    assert seen["RLOTEL_ENABLED"] == "true"
    assert seen["RLOTEL_RUN_ID"] == areal.telemetry.session.run_id
    told = json.loads(seen["RLOTEL_DEFAULTS"])
    assert {name: told[name] for name in told if name in IDENTITY} == {
        "RLOTEL_SYSTEM": "areal",
        "RLOTEL_SYSTEM_VERSION": "1.0.4",
        "RLOTEL_ALGORITHM": "GRPO",
        "RLOTEL_MODEL": "Qwen/Qwen3-8B",
        "RLOTEL_ENVIRONMENT": "openai/gsm8k",
    }


def test_what_the_user_calls_it_is_what_workers_are_told(standins: None) -> None:
    with captured({"RLOTEL_ALGORITHM": "mine"}, frameworks=("areal",)) as telemetry:
        areal = Areal(telemetry)
        areal.trainer(settings())
        assert json.loads(os.environ["RLOTEL_DEFAULTS"])["RLOTEL_ALGORITHM"] == "mine"


def test_a_process_says_what_it_uses_its_gpus_for(areal: Areal) -> None:
    told: list[str] = []
    areal.telemetry.session.process.on_role = lambda role, _devices: told.append(role)
    areal.module("engine.fsdp_engine").FSDPEngine().initialize(None, None)
    areal.module("engine.megatron_engine").MegatronEngine().initialize(None, None)
    areal.module("infra.remote_inf_engine").RemoteInfEngine().launch_server({})
    assert told == ["trainer", "trainer", "rollout"]


def test_another_rank_reports_no_iteration(standins: None) -> None:
    with captured({"RANK": "1", "WORLD_SIZE": "2"}, frameworks=("areal",)) as telemetry:
        started(Areal(telemetry), settings())
        assert telemetry.points("rl.loop.duration") == []
        assert telemetry.points("rl.sample.samples") == []
        assert telemetry.value("rl.worker.duration", **{"rl.phase.name": "sample"}) == 2.0
