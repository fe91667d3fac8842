"""Loggers that are watched: the trainer's own calls go through unchanged, and are let go of again."""

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import rlotel
from rlotel import SettingError
from rlotel.adapters import Keys, each, follow, seconds
from rlotel.testing import Telemetry

REWARD = "rl.environment.reward.mean"


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A trainer nobody has heard of, with a logger of its own."""
    module = types.ModuleType("nobodys")

    class Logger:
        def __init__(self) -> None:
            self.written: list[tuple[Any, Any]] = []

        def log(self, metrics: Mapping[str, Any], global_step: int) -> int:
            self.written.append((metrics, global_step))
            if "fail" in metrics:
                raise OSError("the disk is full")
            return len(self.written)

        def named(self, **values: float) -> None:
            self.written.append((values, None))

        def text(self, line: str) -> None:
            self.written.append((line, None))

    module.Logger = Logger  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nobodys", module)
    return module


def test_a_function_of_the_trainers_is_followed_and_not_changed(
    telemetry: Telemetry, trainer: types.ModuleType
) -> None:
    original = trainer.Logger.log
    log = follow("nobodys:Logger.log", {"reward": REWARD, "t": seconds("train")}, system="nobodys")
    logger, values = trainer.Logger(), {"reward": 0.5, "t": 2.0, "other": 1}
    assert logger.log(values, 3) == 1
    assert logger.written == [({"reward": 0.5, "t": 2.0, "other": 1}, 3)]
    assert logger.written[0][0] is values
    assert telemetry.value(REWARD) == 0.5
    assert log.unmapped == ["other"]
    telemetry.clock.advance(10)
    logger.log({"reward": 0.6, "t": 2.0}, global_step=4)
    log.finish()
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")] == [4]
    rlotel.uninstrument()
    assert trainer.Logger.log is original


def test_a_log_call_that_fails_logs_nothing(telemetry: Telemetry, trainer: types.ModuleType) -> None:
    follow("nobodys:Logger.log", {"reward": REWARD})
    with pytest.raises(OSError, match="the disk is full"):
        trainer.Logger().log({"reward": 0.5, "fail": True}, 1)
    assert telemetry.points(REWARD) == []


def test_keywords_are_values_too(telemetry: Telemetry, trainer: types.ModuleType) -> None:
    follow("nobodys:Logger.named", {"reward": REWARD})
    trainer.Logger().named(reward=0.25)
    assert telemetry.value(REWARD) == 0.25


def test_a_call_without_values_is_left_alone(telemetry: Telemetry, trainer: types.ModuleType) -> None:
    follow("nobodys:Logger.text", {"reward": REWARD})
    trainer.Logger().text("step 3")
    assert telemetry.points(REWARD) == []


def test_following_again_replaces_the_table(telemetry: Telemetry, trainer: types.ModuleType) -> None:
    follow("nobodys:Logger.log", {"n": each("rl.train.steps")})
    follow("nobodys:Logger.log", {"n": each("rl.sample.episodes")})
    logger = trainer.Logger()
    logger.log({"n": 1}, 1)
    logger.log({"n": 1}, 2)
    assert (telemetry.value("rl.train.steps"), telemetry.value("rl.sample.episodes")) == (0, 1)


def test_following_again_does_not_watch_twice(telemetry: Telemetry, trainer: types.ModuleType) -> None:
    original = trainer.Logger.log
    for _ in range(5):
        follow("nobodys:Logger.log", {"reward": REWARD})
        assert trainer.Logger.log.__wrapped__ is original
    trainer.Logger().log({"reward": 0.5}, 1)
    assert telemetry.value(REWARD) == 0.5


def test_a_logger_that_is_a_stub_is_followed_once_it_is_there(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", types.ModuleType("mlflow"))  # as tests of trainers make one
    assert follow("mlflow", {"reward": REWARD}).missing == ["reward"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "wanddb",
            "'wanddb' can't be followed; did you mean 'wandb'? There are wandb, tensorboard, mlflow, functions",
        ),
        (
            "swanlab",
            "'swanlab' can't be followed: there are wandb, tensorboard, mlflow, functions as package.module:",
        ),
        (Path("/"), "/ is a folder: give the file of JSON lines in it"),
        (Path("/dev/null"), "/dev/null is no file: give one of JSON lines"),
        ("/dev/null/metrics.jsonl", "/dev/null/metrics.jsonl can't be read: [Errno 20] Not a directory"),
        ("null\0.jsonl", "null\0.jsonl can't be read: "),
        ("~nobody-of-that-name/m.jsonl", "~nobody-of-that-name/m.jsonl can't be read: "),
        (
            "nosuchtrainer.log:write",
            "nosuchtrainer.log:write is to be followed, but there is no module nosuchtrainer",
        ),
        ("os:loog", "module 'os' has no attribute 'loog'. If loog is defined further down, call follow() after"),
        ("os:environ", "os:environ is a _Environ: only functions can be followed"),
        ("os:PathLike", "os:PathLike is a ABCMeta: only functions can be followed"),
    ],
)
def test_what_cannot_be_followed_is_an_error(telemetry: Telemetry, source: str | Path, problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        follow(source, {"reward": REWARD})
    assert str(raised.value).startswith(f"source: {problem}")


def test_a_logger_that_is_not_installed_is_an_error(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "mlflow", raising=False)
    with pytest.raises(SettingError, match="source: mlflow is to be followed, but mlflow is not installed"):
        follow("mlflow", {"reward": REWARD})


def played(log: Callable[[dict[str, float], int], object], telemetry: Telemetry) -> None:
    """Three steps through a logger, 10 s apart."""
    for step in (1, 2, 3):
        telemetry.clock.advance(10)
        log({"train/reward": step / 10, "time/rollout": 4.0, "tokens": 500.0, "eval/score": 0.9}, step)


TABLE: Keys = {
    "train/reward": REWARD,
    "time/rollout": seconds("sample"),
    "tokens": each("rl.sample.tokens", type="completion"),
}


def assert_seen(telemetry: Telemetry) -> None:
    """What `played` must have become, whatever the logger."""
    assert telemetry.value(REWARD) == 0.3
    (loops,) = telemetry.points("rl.loop.duration")
    assert (loops.count, loops.sum) == (2, 20.0)
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")] == [2, 3]
    assert telemetry.value("rl.sample.duration") == 12.0
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "completion"}) == 1500
    assert telemetry.value("rl.tokens.rate") == 50
    assert telemetry.value("rl.evaluation.score", **{"rl.evaluation.name": "score"}) == 0.9


@pytest.fixture
def wandb_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(
        mode="offline", dir=str(tmp_path), project="rlotel", settings=wandb.Settings(x_disable_stats=True)
    )
    yield run
    run.finish()


@pytest.mark.filterwarnings("default")
def test_wandb_is_followed(telemetry: Telemetry, wandb_run: Any) -> None:
    import wandb

    original = vars(type(wandb_run))["_log"]
    log = follow("wandb", TABLE, evaluation="eval/")
    # The run is older than the watch, and the module's function is its bound method.
    played(lambda values, step: wandb.log(values, step=step), telemetry)
    log.finish()
    assert_seen(telemetry)
    rlotel.uninstrument()
    assert vars(type(wandb_run))["_log"] is original


@pytest.mark.filterwarnings("default")
def test_wandbs_own_count_of_steps_is_known(telemetry: Telemetry, wandb_run: Any) -> None:
    follow("wandb", TABLE, evaluation="eval/")
    wandb_run.log({})  # so that steps begin with 1
    played(lambda values, _step: wandb_run.log(values), telemetry)
    assert_seen(telemetry)  # without an end: each call was a whole step


def test_tensorboard_is_followed(telemetry: Telemetry, tmp_path: Path) -> None:
    module = pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    log = follow("tensorboard", TABLE, evaluation="eval/")
    with module.SummaryWriter(str(tmp_path)) as writer:

        def add(values: dict[str, float], step: int) -> None:
            for key, value in values.items():
                writer.add_scalar(key, value, step)

        played(add, telemetry)
        writer.add_scalars("more", {"a": 1, "b": 2}, 3)
        log.finish()
        assert_seen(telemetry)
        assert log.unmapped == ["more/a", "more/b"]
        rlotel.uninstrument()
        assert "rlotel" not in repr(type(module.SummaryWriter.add_scalar))


def test_pytorchs_tensorboard_is_followed(telemetry: Telemetry, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    module = pytest.importorskip("torch.utils.tensorboard", reason="tensorboard is not installed")
    log = follow("tensorboard", TABLE, evaluation="eval/")
    with module.SummaryWriter(str(tmp_path)) as writer:

        def add(values: dict[str, float], step: int) -> None:
            for key, value in values.items():
                writer.add_scalar(key, value, step)

        played(add, telemetry)
        writer.add_scalars("more", {"a": 1, "b": 2}, 3)
        log.finish()
        assert_seen(telemetry)
        assert log.unmapped == ["more/a", "more/b"]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("numbered", [True, False], ids=["with steps", "without"])
def test_mlflows_batch_of_many_steps_has_each_of_them(
    telemetry: Telemetry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbered: bool
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    entities = pytest.importorskip("mlflow.entities", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    log = follow("mlflow", {"reward": REWARD, "tokens": each("rl.train.tokens")})
    telemetry.clock.advance(1000)
    made = [
        entities.Metric(key, value, 1_790_000_000_000 + 10_000 * step, step if numbered else 0)
        for key, value in (("reward", 0.5), ("tokens", 100))  # a key after the other, as autologging gathers them
        for step in (1, 2, 3)
    ]
    with mlflow.start_run() as run:
        mlflow.MlflowClient().log_batch(run.info.run_id, metrics=made)
    log.finish()
    assert telemetry.value("rl.train.tokens") == 300
    (loops,) = telemetry.points("rl.loop.duration")
    assert (loops.count, loops.sum) == (2, 20.0)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("together", [True, False], ids=["log_metrics", "log_metric"])
def test_mlflow_is_followed(
    telemetry: Telemetry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    log = follow("mlflow", TABLE, evaluation="eval/")

    def add(values: dict[str, float], step: int) -> None:
        if together:
            mlflow.log_metrics(values, step=step)
        else:
            for key, value in values.items():
                mlflow.log_metric(key, value, step=step)

    with mlflow.start_run():
        played(add, telemetry)
    log.finish()
    assert_seen(telemetry)
