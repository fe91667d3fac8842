"""A key table that is wrong is said at once, with the key and what was probably meant."""

from collections.abc import Mapping
from typing import Any

import pytest

from rlotel import SettingError
from rlotel.adapters import Log, each, gauge, logger, milliseconds, seconds, total
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric
from rlotel.testing import Telemetry


@pytest.mark.parametrize(
    ("key", "meaning", "problem"),
    [
        ("train/los", "rl.train.los", "rl.train.los is no metric of the model; did you mean rl.train.loss?"),
        ("x", "loss", "loss is no metric of the model; did you mean rl.train.loss?"),
        ("x", "qqq", "qqq is no metric of the model; `rlotel semconv list` lists them"),
        ("x", {"gauge": "rl.entropy"}, "{'gauge': 'rl.entropy'} is no metric: give a name such as "),
        ("x", gauge("rl.kl.divergence", reference="referenc"), "rl.kl.reference is 'referenc'; "),
        ("x", 3, "3 is no metric: give a name such as rl.environment.reward.mean"),
        (
            "time",
            "rl.sample.duration",
            'rl.sample.duration is a duration: say seconds("sample") or milliseconds("sample"), as it is logged',
        ),
        (
            "time",
            m.LOOP_DURATION,
            'rl.loop.duration is a duration: say seconds("loop") or milliseconds("loop"), as it is logged',
        ),
        (
            "tokens",
            "rl.train.tokens",
            'rl.train.tokens is a counter: say total("rl.train.tokens") if what is logged grows over the run, ',
        ),
        ("age", "rl.progress.age", "rl.progress.age is found out by rlotel itself, not told by a log"),
        ("idle", "rl.loop.idle.ratio", "rl.loop.idle.ratio is found out by rlotel itself, not told by a log"),
        ("gpu", "rl.gpu.ofu", "rl.gpu.ofu is found out by rlotel itself, not told by a log"),
        ("t", seconds("sampel"), "there is no phase 'sampel'; did you mean sample?"),
        ("t", seconds("rl.train.loss"), "rl.train.loss is no phase: give a word, such as sample, reward, "),
        ("t", seconds("idle"), "idle is what is left of an iteration: rlotel finds it out itself"),
        ("t", seconds(" "), "the phase has no name"),
        ("t", seconds("loop", role="actor"), "loop has no attribute 'role'; it takes none"),
        (
            "t",
            seconds("checkpoint"),
            "the phase checkpoint needs rl.checkpoint.operation: give operation=, such as ",
        ),
        ("t", seconds("checkpoint", operation="sav"), "rl.checkpoint.operation is 'sav'; it is one of save, "),
        (
            "t",
            seconds("checkpoint", operation="save", blocking="no"),
            "rl.checkpoint.blocking is 'no': use true or false",
        ),
        ("t", seconds("sample", kind="making"), "rl.sample.kind is 'making'; it is one of generate, wait"),
        ("kl", gauge("rl.kl.divergence", to="ref"), "rl.kl.divergence has no attribute 'to'; it takes reference"),
        ("n", gauge("rl.grad_norm", role=""), "rl.role is '': use a text"),
        ("n", gauge("rl.grad_norm", scale="2"), "scale is '2': use a number"),  # type: ignore[arg-type]
        ("n", gauge("rl.grad_norm", scale=float("nan")), "scale is nan: use a number"),
        ("n", gauge("rl.grad_norm", scale=True), "scale is True: use a number"),
        ("t", seconds(["sample"]), "['sample'] is no phase: give a word, such as sample, "),  # type: ignore[arg-type]
        ("n", total("rl.train.loss"), "rl.train.loss is no count that a log tells; such are "),
        ("n", each("rl.restarts"), "rl.restarts is no count that a log tells; such are "),
        (
            "n",
            each("rl.sample.tokens", type="cached"),
            "rl.token.type is 'cached'; it is one of prompt, completion",
        ),
    ],
)
def test_a_meaning_that_is_none_is_an_error_that_names_its_key(key: str, meaning: Any, problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        logger({"reward": "rl.environment.reward.mean", key: meaning})
    assert str(raised.value).startswith(f"table key {key!r}: {problem}")


def test_a_key_of_an_evaluation_cannot_mean_a_value_of_training() -> None:
    with pytest.raises(
        SettingError, match=r"table key 'eval/reward': its prefix says that it is of an evaluation"
    ):
        logger({"eval/reward": "rl.environment.reward.mean"}, evaluation="eval/")
    with pytest.raises(SettingError, match="an empty prefix would make an evaluation of every key"):
        logger({"reward": "rl.environment.reward.mean"}, evaluation=("eval/", ""))


@pytest.mark.parametrize(
    ("keys", "more", "problem"),
    [
        (["reward"], {}, "keys: ['reward'] is no table: use a dictionary of log keys and what each means"),
        ({3: "rl.entropy"}, {}, "keys: {3: 'rl.entropy'} is no table: use a dictionary of log keys"),
        ({}, {"evaluation": 5}, "evaluation: 5 is no prefix of keys: use a text, or a list of texts"),
        ({}, {"evaluation": ["eval/", 5]}, "evaluation: ['eval/', 5] is no prefix of keys: use a text"),
        ({}, {"step": 5}, "step: 5 is no text"),
        ({}, {"system": b"mine"}, "system: b'mine' is no text"),
    ],
)
def test_a_table_that_is_none_is_an_error_that_says_of_what(keys: Any, more: Any, problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        logger(keys, **more)
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize(
    ("meaning", "metric", "attributes", "value"),
    [
        ("rl.train.loss", m.TRAIN_LOSS, {"rl.loss.type": "total"}, 2.0),
        (m.ENTROPY, m.ENTROPY, {}, 2.0),
        (gauge(m.TRAIN_LOSS, type="policy", role="critic"), m.TRAIN_LOSS, {"rl.loss.type": "policy"}, 2.0),
        (gauge("rl.train.mfu", scale=0.01), m.TRAIN_MFU, {}, 0.02),
        (gauge("rl.kl.divergence", reference="rollout"), m.KL_DIVERGENCE, {}, 2.0),
        (gauge("rl.entropy", scale=-1), m.ENTROPY, {}, -2.0),
        ("rl.evaluation.score", m.EVALUATION_SCORE, {"rl.evaluation.name": "key"}, 2.0),
    ],
)
def test_a_gauge_is_meant_in_whatever_way_it_is_written(
    telemetry: Telemetry, meaning: Any, metric: Metric, attributes: Mapping[str, str], value: float
) -> None:
    logger({"key": meaning})({"key": 2.0}, 1)
    assert telemetry.value(metric, **attributes) == pytest.approx(value)


@pytest.mark.parametrize(
    ("meaning", "metric", "attributes", "sum_"),
    [
        (seconds("sample"), m.SAMPLE_DURATION, {"rl.sample.kind": "generate"}, 1500.0),
        (milliseconds("sample", kind="wait"), m.SAMPLE_DURATION, {"rl.sample.kind": "wait"}, 1.5),
        (seconds(m.REWARD_DURATION, sandbox="gke-agent-sandbox"), m.REWARD_DURATION, {}, 1500.0),
        (seconds("rl.train.duration", role="critic"), m.TRAIN_DURATION, {"rl.role": "critic"}, 1500.0),
        (seconds("sync", destination="vllm"), m.SYNC_DURATION, {"rl.sync.source": "learner"}, 1500.0),
        (seconds("logprob"), m.PHASE_DURATION, {"rl.phase.name": "logprob"}, 1500.0),
        (seconds("rollout prep"), m.PHASE_DURATION, {"rl.phase.name": "rollout prep"}, 1500.0),
        (milliseconds("loop"), m.LOOP_DURATION, {}, 1.5),
    ],
)
def test_a_duration_is_meant_in_whatever_way_it_is_written(
    telemetry: Telemetry, meaning: Any, metric: Metric, attributes: Mapping[str, str], sum_: float
) -> None:
    telemetry.clock.advance(2000)
    log = logger({"key": meaning})
    log({"key": 1500}, 1)
    log.finish()
    assert telemetry.value(metric, **attributes) == pytest.approx(sum_)


@pytest.mark.parametrize(
    ("meaning", "metric", "attributes"),
    [
        (each("rl.sample.samples"), m.SAMPLE_SAMPLES, {}),
        (each(m.SAMPLE_TOKENS, type="completion"), m.SAMPLE_TOKENS, {"rl.token.type": "completion"}),
        (each("rl.train.steps", role="critic"), m.TRAIN_STEPS, {"rl.role": "critic"}),
        (each("rl.sample.steps"), m.SAMPLE_STEPS, {}),
    ],
)
def test_a_count_is_meant_in_whatever_way_it_is_written(
    telemetry: Telemetry, meaning: Any, metric: Metric, attributes: Mapping[str, str]
) -> None:
    log = logger({"key": meaning})
    for step in range(3):
        log({"key": 5}, step)
    log.finish()
    assert telemetry.value(metric, **attributes) == 15


def test_one_key_may_mean_several_things(telemetry: Telemetry) -> None:
    meant = gauge("rl.kl.divergence", reference="reference"), gauge("rl.train.loss", type="kl_divergence")
    logger({"kl": meant})({"kl": 0.25}, 1)
    assert telemetry.value("rl.kl.divergence") == 0.25
    assert telemetry.value("rl.train.loss") == 0.25


def test_without_a_session_nothing_happens_and_it_is_said(caplog: pytest.LogCaptureFixture) -> None:
    log = logger({"reward": "rl.environment.reward.mean"})
    log({"reward": 1.0, "other": 2.0}, step=1)
    log.finish()
    assert (log.unmapped, log.missing) == ([], ["reward"])
    assert [record.message for record in caplog.records] == [
        "rlotel is not on, so nothing is followed: call rlotel.instrument() before"
    ]


def test_where_rlotel_is_switched_off_nothing_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLOTEL_ENABLED", "false")
    assert isinstance(logger({"reward": "rl.environment.reward.mean"}), Log)
    assert caplog.records == []
