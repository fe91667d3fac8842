"""Iterations of SkyRL: when they begin and end, what is in them, and what is none."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import rlotel

from .conftest import Sky, answered, watched

SCORES = {
    "eval/all/avg_score": 0.5,
    "eval/sums/pass_at_1": 0.25,
    "eval/all/environment/hit": 2.0,
    "eval/all/generate/avg_num_tokens": 9.0,
    "timing/eval_generate": 0.1,
}


def test_attempts_at_one_iteration_are_one(sky: Sky) -> None:
    trainer = sky.trainer()
    for step, attempts in ((1, 3), (2, 1)):
        trainer.global_step = step
        for _ in range(attempts):
            with sky.timer("step", 1.0), sky.timer("generate", 2.0):
                pass
        sky.pass_(10.0)  # an evaluation
        sky.log(trainer)
    assert [span.attributes["rl.loop.iteration"] for span in sky.telemetry.spans("rl.loop")] == [1, 2]
    assert sky.value("rl.loop.duration") == 12.0
    (point,) = sky.telemetry.points("rl.sample.duration")
    assert (point.count, point.sum) == (2, 8.0)


def test_an_attempt_that_found_no_more_rollouts_is_no_iteration(sky: Sky) -> None:
    trainer = sky.trainer("async")
    trainer.global_step = 1

    def train(_: object) -> None:
        with sky.timer("step"), sky.timer("wait_for_generation_buffer", 1.0):
            pass

    sky.parts["train"] = train
    sky.run(trainer.train())
    assert sky.telemetry.spans("rl.loop") == []
    assert sky.telemetry.points("rl.loop.duration") == []
    assert sky.telemetry.points("rl.loop.age") == []


def test_rollouts_that_were_too_few_for_an_update_are_reported(sky: Sky) -> None:
    trainer = sky.trainer()
    trainer.global_step = 1

    def train(_: object) -> None:
        with sky.timer("step"), sky.timer("generate", 1.0):
            pass

    sky.parts["train"] = train
    sky.run(trainer.train())
    assert sky.value("rl.sample.duration") == 1.0
    assert len(sky.telemetry.spans("rl.loop")) == 1


def test_an_asynchronous_iteration_stays_open_until_the_next_for_its_rollouts(sky: Sky) -> None:
    trainer = sky.trainer("async")
    sky.parts["generate"] = lambda _: answered([3], [5])
    for step in (1, 2):
        trainer.global_step = step
        with sky.timer("step", 1.0):
            pass
        sky.log(trainer)
        sky.generate(trainer)  # during the evaluation
    sky.run(trainer.train())
    spans = {span.span_id: span for span in sky.telemetry.spans("rl.loop")}
    assert [spans[str(span.parent_id)].attributes for span in sky.telemetry.spans("rl.sample")] == [
        {"rl.loop.iteration": 1},
        {"rl.loop.iteration": 2},
    ]
    assert sky.value("rl.loop.duration") == 2.0


def test_an_evaluation_says_its_scores_though_they_are_never_logged(sky: Sky) -> None:
    trainer = sky.trainer("async")
    sky.parts["eval"] = lambda _: SCORES
    sky.parts["generate"] = lambda _: answered([3], [5])
    trainer.global_step = 1
    with sky.timer("step"):
        pass
    with sky.timer("eval", 2.0):
        sky.generate(trainer, "eval")
        sky.run(trainer.eval())
    sky.run(trainer.train())
    scores = {
        point.attributes["rl.evaluation.name"]: point.value
        for point in sky.telemetry.points("rl.evaluation.score")
    }
    assert scores == {"all/avg_score": 0.5, "sums/pass_at_1": 0.25}
    assert sky.value("rl.phase.duration", phase_name="evaluate") == 2.0
    assert sky.value("rl.sample.samples") == 0
    assert sky.telemetry.points("rl.sample.duration") == []


def test_scores_that_are_logged_with_an_iteration_are_no_values_of_training(sky: Sky) -> None:
    trainer = sky.trainer()
    trainer.global_step = 1
    with sky.timer("step"):
        pass
    sky.log(trainer, **{"reward/avg_raw_reward": 0.125, "eval/all/avg_score": 0.5})
    assert sky.value("rl.environment.reward.mean") == 0.125
    assert sky.telemetry.points("rl.evaluation.score") == []  # its own call tells them


def test_training_that_fails_ends_its_iteration_and_its_phase(sky: Sky) -> None:
    trainer = sky.trainer()
    trainer.global_step = 4
    with pytest.raises(ZeroDivisionError), sky.timer("step"), sky.timer("policy_train", 1.0):
        raise ZeroDivisionError
    update, root = sky.telemetry.spans()
    assert (update.name, root.name) == ("rl.train", "rl.loop")
    for span in (update, root):
        assert span.status_code == "error"
        assert span.attributes["error.type"] == "ZeroDivisionError"
    assert sky.value("rl.train.duration", role="actor") == 1.0


def test_timers_of_what_is_no_rl_are_left_alone(sky: Sky) -> None:
    with sky.timer("step", 1.0), sky.timer("save_checkpoints", 1.0):
        pass  # fine-tuning has timers of the same names
    assert sky.telemetry.spans() == []


def test_a_checkpoint_is_durable_and_an_export_is_not(sky: Sky) -> None:
    trainer = sky.trainer()
    for step, name in ((1, "save_checkpoints"), (2, "save_hf_model")):
        trainer.global_step = step
        with sky.timer("step"), sky.timer(name, 1.0):
            pass
        sky.log(trainer)
    with sky.timer("save_checkpoints", 1.0):  # the last, when training is over
        pass
    assert sky.value("rl.checkpoint.duration") == 3.0
    assert sky.value("rl.checkpoint.step") == 2


def test_a_checkpoint_that_is_written_in_the_background_is_not_durable_yet(sky: Sky) -> None:
    trainer = sky.trainer(settings={"trainer.policy.megatron_config.async_dist_ckpt_save": True})
    trainer.global_step = 1
    with sky.timer("step"), sky.timer("save_checkpoints", 1.0):
        pass
    sky.log(trainer)
    assert sky.value("rl.checkpoint.duration") == 1.0
    assert sky.telemetry.points("rl.checkpoint.step") == []


@pytest.mark.parametrize(("step", "restores"), [(0, 0), (7, 1)])
def test_a_run_is_restored_where_there_was_a_checkpoint(sky: Sky, step: int, restores: int) -> None:
    trainer = sky.trainer()

    def load(_: object) -> tuple[int, None]:
        sky.pass_(3.0)
        return step, None

    sky.parts["load_checkpoints"] = load
    with sky.timer("load_checkpoints"):
        trainer.load_checkpoints()
    points = sky.telemetry.points("rl.checkpoint.duration", **{"rl.checkpoint.operation": "restore"})
    assert [(point.count, point.sum) for point in points] == [(1, 3.0)] * restores


def test_the_launcher_does_not_have_the_loop_and_says_whose_it_is(sky: Sky) -> None:
    trainer = sky.trainer()
    sky.module("utils.utils").initialize_ray(trainer.cfg)
    assert sky.telemetry.session.process.loop == "elsewhere"


def test_a_launcher_is_known_before_skyrl_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "python -m skyrl.train.entrypoints.main_base trainer.algorithm.advantage_estimator=gae"
    settings = "trainer.policy.model.path=/models/qwen environment.env_class=gsm8k"
    monkeypatch.setattr("sys.orig_argv", f"{command} {settings}".split())
    with watched(tmp_path) as sky:
        assert sky.telemetry.session.process.loop == "elsewhere"
        assert sky.telemetry.session.identity.freeze() == {
            "rl.run.id": "test",
            "rl.system": "skyrl",
            "rl.system.version": "0.0.0",
            "rl.algorithm": "PPO",
            "rl.model.name": "qwen",
            "rl.environment.name": "gsm8k",
        }


def test_a_program_that_only_names_skyrl_is_no_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "skyrl.tinker.api", "--port=8000"])
    with watched(tmp_path) as sky:
        assert sky.telemetry.session.process.loop is None


def test_a_trainer_that_is_made_has_the_loop(sky: Sky) -> None:
    cfg = SimpleNamespace(trainer=SimpleNamespace(policy=SimpleNamespace(model=SimpleNamespace(path="/m/qwen"))))
    sky.module("utils.utils").initialize_ray(cfg)
    sky.module("trainer").RayPPOTrainer(cfg, None, None, None, None, sky.generator())
    assert sky.telemetry.session.process.loop == "here"


def test_a_later_trainer_of_the_process_is_followed_too(sky: Sky) -> None:
    sky.parts["generate"] = lambda _: answered([3], [5])
    for _ in range(2):
        trainer = sky.trainer()
        trainer.global_step = 1
        with sky.timer("step"), sky.timer("generate"):
            sky.generate(trainer)
        sky.log(trainer)
        sky.run(trainer.train())
    assert sky.value("rl.sample.samples") == 2
    assert len(sky.telemetry.spans("rl.loop")) == 2


def test_gpus_are_counted_by_what_they_are_for(sky: Sky) -> None:
    sky.trainer(
        settings={
            "trainer.placement.colocate_all": False,
            "trainer.placement.colocate_policy_ref": False,
            "trainer.placement.ref_num_nodes": 1,
            "trainer.placement.ref_num_gpus_per_node": 2,
            "trainer.placement.critic_num_nodes": 1,
            "trainer.placement.critic_num_gpus_per_node": 4,
            "trainer.critic.model.path": "Qwen/Qwen3-0.6B",
            "trainer.algorithm.use_kl_loss": True,
            "generator.inference_engine.num_engines": 4,
            "generator.inference_engine.tensor_parallel_size": 2,
        }
    )
    hardware = sky.telemetry.session.recorder.hardware
    assert (hardware.gpus, hardware.gpus_of) == (8 + 4 + 2 + 8, {"train": 12, "sample": 8})


def test_engines_that_share_the_trainers_gpus_add_none(sky: Sky) -> None:
    sky.trainer(settings={"generator.inference_engine.num_engines": 8})
    assert sky.telemetry.session.recorder.hardware.gpus == 8


def test_the_package_is_known_by_its_former_name(tmp_path: Path) -> None:
    with watched(tmp_path, "skyrl_train") as sky:
        trainer = sky.trainer(settings={"generator.inference_engine.backend": None, "generator.backend": "sglang"})
        trainer.global_step = 1
        with sky.timer("step", 1.0), sky.timer("sync_weights", 1.0):
            pass
        sky.log(trainer, **{"policy/raw_grad_norm": 0.5, "policy/ppo_clip_ratio": 0.25})
        assert sky.value("rl.sync.duration", sync_destination="sglang") == 1.0
        assert sky.value("rl.grad_norm", role="actor") == 0.5
        assert sky.value("rl.train.clip.ratio", role="actor") == 0.25


def test_uninstrument_puts_the_users_classes_back_as_well(sky: Sky) -> None:
    trainer = sky.trainer()
    methods = {(sky.generator, "generate"), (sky.environment, "step"), (sky.dispatch, "optim_step")}
    before = {key: vars(key[0])[key[1]] for key in methods}
    sky.make_environment()
    with sky.timer("step"):
        pass
    assert trainer is not None  # it is not kept alive for us
    assert {key for key in methods if vars(key[0])[key[1]] is before[key]} == set()
    rlotel.uninstrument()
    assert {key for key in methods if vars(key[0])[key[1]] is before[key]} == methods
