"""What is made of the numbers of a commit."""

from typing import Any

import pytest

from .conftest import Areal, settings

ROWS = {"ppo_actor/n_seqs": 8.0, "ppo_actor/seq_len/avg": 12.5, "ppo_actor/prompt_len/avg": 2.5}
ROWS |= {"ppo_actor/n_valid_tokens": 80.0, "ppo_actor/n_tokens": 256.0, "ppo_actor/no_eos_ratios/avg": 0.25}
STEPS = {"ppo_actor/eps_clip__count": 4, "ppo_actor/update/grad_norm__count": 16}


def iteration(areal: Areal, config: Any = None, **data: float) -> None:
    """One iteration that commits these numbers."""

    def body() -> None:
        areal.time("rollout", 4.0)
        areal.time("train_step", 2.0)
        areal.time("critic_train_step", 2.0)
        areal.commit(0, **data)

    trainer = areal.trainer(config or settings())
    before = areal.script.run
    areal.script.run = lambda name, known: body() if name == "train" else before(name, known)
    trainer.train()


def test_padding_is_no_tokens(areal: Areal) -> None:
    iteration(areal, **ROWS)
    value = areal.telemetry.value
    assert value("rl.sample.samples") == 8
    assert value("rl.sample.tokens", **{"rl.token.type": "prompt"}) == 20
    assert value("rl.sample.tokens", **{"rl.token.type": "completion"}) == 80
    assert value("rl.train.tokens", **{"rl.role": "actor"}) == 100
    assert value("rl.train.tokens", **{"rl.role": "critic"}) == 100
    assert value("rl.environment.episode.length.mean") == 10


def test_the_longest_row_of_a_batch_is_not_said_to_be_cut_off(areal: Areal) -> None:
    iteration(areal, **ROWS)
    assert areal.telemetry.points("rl.sample.truncated.ratio") == []


def test_steps_do_not_depend_on_how_many_ranks_note_them(areal: Areal) -> None:
    iteration(areal, **STEPS, **{"ppo_critic/eps_clip__count": 2, "ppo_critic/grad_norm__count": 4})
    assert areal.telemetry.value("rl.train.steps", **{"rl.role": "actor"}) == 4
    assert areal.telemetry.value("rl.train.steps", **{"rl.role": "critic"}) == 2


def test_a_step_that_was_not_taken_is_not_counted(areal: Areal) -> None:
    iteration(areal, **STEPS, **{"ppo_actor/update/update_successful": 0.75})
    assert areal.telemetry.value("rl.train.steps", **{"rl.role": "actor"}) == 3


@pytest.mark.parametrize("scope", ["sft", "rw", "dpo"])
def test_a_supervised_update_is_one_step(areal: Areal, scope: str) -> None:
    known = {
        f"{scope}/grad_norm__count": 4,
        f"{scope}/grad_norm": 2.0,
        f"{scope}/loss/avg": 1.5,
        f"{scope}/lr": 0.1,
    }
    iteration(areal, **known)
    value = areal.telemetry.value
    assert value("rl.train.steps", **{"rl.role": "actor"}) == 1
    assert value("rl.train.loss", **{"rl.loss.type": "total"}) == 1.5
    assert value("rl.grad_norm", **{"rl.role": "actor"}) == 2.0
    assert value("rl.learning_rate", **{"rl.role": "actor"}) == 0.1


def test_what_is_not_committed_is_not_counted(areal: Areal) -> None:
    iteration(areal, **{"timeperf/rollout": 4.0})
    assert areal.telemetry.value("rl.sample.samples") == 0
    assert areal.telemetry.points("rl.train.steps", **{"rl.role": "actor"}) == []
    assert areal.telemetry.points("rl.environment.reward.mean") == []
    assert areal.telemetry.points("rl.environment.episode.length.mean") == []


def test_finished_rollouts_are_episodes(areal: Areal) -> None:
    iteration(areal, **ROWS, **{"rollout/reward": 0.5, "rollout/reward__count": 11})
    assert areal.telemetry.value("rl.sample.episodes") == 11


def test_a_controller_asks_its_workers_how_many_rollouts_are_finished(areal: Areal) -> None:
    def ask(method: str) -> None:
        areal.module("infra.controller.rollout_controller").RolloutController()._collective_rpc(method)

    answers = [{"rollout/reward": 0.5, "rollout/reward__count": 3}, {"rollout/accepted__count": 2}]
    answers.append({"rollout/reward": 1.0, "rollout/reward__count": 4})
    areal.play(_collective_rpc=lambda known: answers if known["method"] == "export_stats" else [None])
    areal.module("trainer.rl_trainer")
    ask("pause")
    ask("export_stats")
    iteration(areal, **ROWS, **{"rollout/reward": 0.5})
    assert areal.telemetry.value("rl.sample.episodes") == 7


def test_an_evaluation_is_never_in_the_gauges_of_training(areal: Areal) -> None:
    scores = {"eval-rollout/reward": 0.9, "eval-rollout/reward__count": 64, "eval-rollout/num_turns": 3.0}
    iteration(areal, **ROWS, **scores, **{"ppo_actor/task_reward/avg": 0.1, "rollout/reward": 0.2})
    telemetry = areal.telemetry
    found = {
        point.attributes["rl.evaluation.name"]: point.value for point in telemetry.points("rl.evaluation.score")
    }
    assert found == {"reward": 0.9, "num_turns": 3.0}
    assert telemetry.value("rl.environment.reward.mean") == 0.1
    assert telemetry.points("rl.environment.episode.turns.mean") == []
    assert telemetry.value("rl.sample.episodes") == 0


def test_supervised_evaluations_are_told_by_their_means(areal: Areal) -> None:
    iteration(
        areal, **{"sft-eval/loss/avg": 2.0, "sft-eval/loss/max": 9.0, "sft-eval/n_seqs": 8, "sft/loss/avg": 1.0}
    )
    telemetry = areal.telemetry
    assert telemetry.value("rl.evaluation.score", **{"rl.evaluation.name": "loss"}) == 2.0
    assert len(telemetry.points("rl.evaluation.score")) == 1
    assert telemetry.value("rl.train.loss", **{"rl.loss.type": "total"}) == 1.0


def test_the_divergence_from_the_reference_is_told_without_its_coefficient(areal: Areal) -> None:
    config = settings(actor__kl_ctl=0.1, ref=object())
    iteration(areal, config, **{"ppo_actor/kl_rewards/avg": -0.002})
    value = areal.telemetry.value("rl.kl.divergence", **{"rl.kl.reference": "reference"})
    assert value == pytest.approx(0.02)


def test_without_a_reference_there_is_no_divergence_from_it(areal: Areal) -> None:
    iteration(areal, **{"ppo_actor/kl_rewards/avg": 0.0})
    assert areal.telemetry.points("rl.kl.divergence") == []


def test_a_commit_of_several_parts_is_one(areal: Areal) -> None:
    areal.logger(settings())
    areal.time("rollout", 1.0)
    logger = areal.module("utils.stats_logger").StatsLogger
    logger.commit(None, 0, 0, 0, [{"ppo_actor/n_seqs": 8.0}, {"ppo_actor/update/lr": 0.5}])
    assert areal.telemetry.value("rl.sample.samples") == 8
    assert areal.telemetry.value("rl.learning_rate") == 0.5
    assert len(areal.telemetry.spans("rl.loop")) == 1
