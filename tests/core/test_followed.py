"""A trainer that is followed: what its watched functions become, whatever its integration's tables say."""

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace

import rlotel
from rlotel import context
from rlotel.integrations.loops import Loops
from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss, of
from rlotel.patching import Call
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, Role, SampleKind
from rlotel.testing import Telemetry, captured

SAVE = Timed("checkpoint", operation=CheckpointOperation.SAVE)
PHASES = {
    "generate": Timed("sample", kind=SampleKind.GENERATE),
    "wait": Timed("sample", kind=SampleKind.WAIT),
    "update": Timed("train", "actor"),
    "score": Timed("reward"),
    "evaluate": Timed("evaluate"),
    "push": Timed("sync"),
    "save": SAVE,
}
GAUGES: Gauges = {
    "loss": loss(LossType.POLICY),
    "entropy_loss": Gauge(m.ENTROPY, scale=-1.0),
    "kl": (kl(KlReference.REFERENCE, zero_is_unknown=True), loss(LossType.KL_DIVERGENCE)),
    "mfu": of(m.TRAIN_MFU, Role.ACTOR, scale=0.01),
}


class Trainer:
    """A framework with a function for each phase, that takes time and runs what it is given."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.loops = Loops(telemetry.session.recorder)
        for name, timed in PHASES.items():
            telemetry.session.patches.watch(f"framework:{name}", **self.loops.phase(timed))

    def do(self, name: str, seconds: float = 1.0, inside: Callable[[], object] = lambda: None) -> None:
        def body() -> None:
            self.telemetry.clock.advance(seconds)
            inside()

        getattr(sys.modules["framework"], name)(body)

    def seconds(self, metric: str, **match: Any) -> dict[str, float | None]:
        """A duration's sum by its attribute that tells most."""
        points = self.telemetry.points(metric, **match)
        return {
            str(point.attributes.get("error.type", point.attributes.get("rl.sample.kind", ""))): point.sum
            for point in points
        }


@contextmanager
def following(environ: dict[str, str] | None = None) -> Iterator[Trainer]:
    module = types.ModuleType("framework")
    for name in PHASES:
        exec(f"def {name}(body): return body()", vars(module))
    sys.modules["framework"] = module
    try:
        with captured(environ, frameworks=()) as telemetry:
            yield Trainer(telemetry)
    finally:
        del sys.modules["framework"]


@pytest.fixture
def trainer() -> Iterator[Trainer]:
    with following() as trainer:
        yield trainer


def test_calls_in_an_iteration_are_its_phases(trainer: Trainer) -> None:
    trainer.loops.setup.sample_batch_size = 64
    trainer.loops.setup.sync_destination = "vllm"
    trainer.loops.begin()
    for name in ("generate", "update", "push"):
        trainer.do(name)
    trainer.loops.close()
    *phases, root = trainer.telemetry.spans()
    assert [span.name for span in phases] == ["rl.sample", "rl.train", "rl.sync"]
    assert {span.parent_id for span in phases} == {root.span_id}
    assert phases[0].attributes == {
        "rl.sample.kind": "generate", "rl.sample.batch_size": 64, "rl.loop.iteration": 1,
    }  # fmt: skip
    assert phases[2].attributes == {
        "rl.sync.source": "learner", "rl.sync.destination": "vllm", "rl.loop.iteration": 1,
    }  # fmt: skip
    assert trainer.telemetry.value("rl.train.duration", **{"rl.role": "actor"}) == 1.0


def test_what_is_logged_after_an_iteration_has_ended_still_belongs_to_it(trainer: Trainer) -> None:
    trainer.loops.begin(7)
    trainer.do("update", 2.0)
    trainer.loops.end()
    trainer.telemetry.clock.advance(5.0)
    trainer.loops.add("train", "actor", steps=3)
    trainer.loops.close()
    (root,) = trainer.telemetry.spans("rl.loop")
    assert root.end_ns - root.start_ns == 2_000_000_000
    assert trainer.telemetry.value("rl.loop.duration") == 2.0
    assert trainer.telemetry.value("rl.train.steps", **{"rl.role": "actor"}) == 3


def test_an_iteration_that_was_only_a_part_of_one_goes_on(trainer: Trainer) -> None:
    trainer.loops.begin()
    trainer.do("generate", 1.0)
    trainer.loops.end()
    trainer.loops.resume()
    trainer.do("generate", 2.0)
    trainer.loops.end()
    trainer.loops.close()
    *rollouts, root = trainer.telemetry.spans()
    assert {span.parent_id for span in rollouts} == {root.span_id}
    assert trainer.telemetry.value("rl.loop.duration") == 3.0
    assert trainer.seconds("rl.sample.duration") == {"generate": 3.0}


def test_the_next_iteration_closes_the_last_and_counts_on(trainer: Trainer) -> None:
    trainer.loops.begin(7)
    trainer.loops.begin()
    trainer.loops.close()
    assert [span.attributes["rl.loop.iteration"] for span in trainer.telemetry.spans("rl.loop")] == [7, 8]


def test_a_phase_inside_of_one_of_its_name_is_that_one(trainer: Trainer) -> None:
    trainer.loops.begin()
    trainer.do("generate", 1.0, lambda: trainer.do("wait", 1.0))
    trainer.loops.close()
    assert trainer.seconds("rl.sample.duration") == {"generate": 2.0}
    assert len(trainer.telemetry.spans("rl.sample")) == 1


def test_what_an_evaluation_does_is_no_part_of_training(trainer: Trainer) -> None:
    trainer.loops.begin()
    trainer.do("evaluate", 1.0, lambda: trainer.do("generate", 1.0, lambda: trainer.do("score")))
    trainer.loops.add("sample", samples=8)
    trainer.loops.close()
    assert trainer.telemetry.value("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 3.0
    assert trainer.telemetry.points("rl.sample.duration") == []
    assert trainer.telemetry.value("rl.sample.samples") == 0
    assert [span.name for span in trainer.telemetry.spans()] == ["rl.phase", "rl.loop"]


def test_a_phase_between_two_iterations_is_of_neither(trainer: Trainer) -> None:
    trainer.loops.begin()
    trainer.loops.end()
    trainer.do("evaluate")
    trainer.loops.begin()
    trainer.loops.close()
    evaluation, *roots = trainer.telemetry.spans()
    assert evaluation.parent_id in (None, "")
    assert [root.name for root in roots] == ["rl.loop", "rl.loop"]
    assert trainer.telemetry.value("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 1.0


def test_a_phase_that_fails_says_so_and_so_does_its_iteration(trainer: Trainer) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    trainer.loops.begin()
    with pytest.raises(ZeroDivisionError) as raised:
        trainer.do("score", 1.0, fail)
    trainer.loops.end(raised.value)
    assert trainer.seconds("rl.reward.duration") == {"ZeroDivisionError": 1.0}
    assert [span.status_code for span in trainer.telemetry.spans()] == ["error", "error"]
    assert trainer.loops.current is None


def test_a_checkpoint_that_was_saved_is_durable_and_one_that_failed_is_not(trainer: Trainer) -> None:
    def fail() -> None:
        raise OSError

    trainer.loops.setup.checkpoint_tier = "object_storage"
    trainer.loops.begin(4)
    trainer.do("save")
    trainer.loops.close()
    trainer.loops.begin(5)
    with pytest.raises(OSError):
        trainer.do("save", 1.0, fail)
    trainer.loops.close()
    assert trainer.telemetry.value("rl.checkpoint.step") == 4


def test_an_iteration_that_was_none_leaves_nothing(trainer: Trainer) -> None:
    trainer.loops.begin()
    trainer.loops.forget()
    assert trainer.telemetry.spans() == []
    assert trainer.telemetry.points("rl.loop.duration") == []
    assert trainer.telemetry.points("rl.loop.age") == []


def test_logged_values_are_told_in_our_units_and_words(trainer: Trainer) -> None:
    trainer.loops.tell({"loss": 0.5, "entropy_loss": -1.25, "kl": 0.0, "mfu": 38.2, "text": "x"}, GAUGES)
    found = {
        (point.name, *sorted(str(value) for key, value in point.attributes.items() if key not in IDENTITY)): round(
            float(point.value or 0), 6
        )
        for metric in ("rl.train.loss", "rl.entropy", "rl.kl.divergence", "rl.train.mfu")
        for point in trainer.telemetry.points(metric)
    }
    assert found == {
        ("rl.train.loss", "policy"): 0.5,
        ("rl.train.loss", "kl_divergence"): 0.0,
        ("rl.entropy",): 1.25,
        ("rl.train.mfu", "actor"): 0.382,
    }


IDENTITY = ("rl.run.id", "rl.system")


@pytest.mark.parametrize("value", [True, "0.5", [0.5]])
def test_a_logged_value_that_is_no_number_is_refused_and_counted(trainer: Trainer, value: object) -> None:
    trainer.loops.tell({"entropy_loss": value}, GAUGES)
    assert trainer.telemetry.points("rl.entropy") == []
    assert sum(point.value or 0 for point in trainer.telemetry.points("rlotel.values.refused")) == 1


def test_what_is_logged_as_none_is_unknown(trainer: Trainer) -> None:
    trainer.loops.tell({"loss": None}, GAUGES)
    assert trainer.telemetry.points("rl.train.loss") == []
    assert trainer.telemetry.errors == []


def test_scores_of_an_evaluation_have_a_metric_of_their_own(trainer: Trainer) -> None:
    trainer.loops.evaluated({"eval_reward": 0.5, "loss": 1.0, "eval_text": "x"}, "eval_")
    (point,) = trainer.telemetry.points("rl.evaluation.score")
    assert point.attributes["rl.evaluation.name"] == "reward"
    assert trainer.telemetry.points("rl.train.loss") == []


def test_on_another_rank_an_iteration_is_only_what_this_worker_did_in_it() -> None:
    with following({"RANK": "1", "WORLD_SIZE": "2"}) as trainer:
        trainer.loops.begin(3)
        trainer.do("update", 2.0)
        trainer.do("save")
        trainer.loops.add("train", "actor", steps=3)
        trainer.loops.tell({"loss": 0.5}, GAUGES)
        trainer.loops.evaluated({"reward": 0.5})
        trainer.loops.end()
        trainer.loops.close()
        telemetry = trainer.telemetry
        owned = [m.LOOP_DURATION, m.TRAIN_DURATION, m.TRAIN_STEPS, m.TRAIN_LOSS, m.EVALUATION_SCORE]
        assert [point for metric in (*owned, m.CHECKPOINT_STEP) for point in telemetry.points(metric)] == []
        assert telemetry.value("rl.worker.duration", **{"rl.phase.name": "train"}) == 2.0
        assert [span.name for span in telemetry.spans()] == ["rl.train", "rl.checkpoint"]


@pytest.mark.parametrize("iteration", [0, 3])  # some frameworks count from 0
def test_its_spans_are_children_of_the_iteration_of_rank_0(iteration: int) -> None:
    parents = set()
    for rank in ("0", "1"):
        with following({"RANK": rank, "WORLD_SIZE": "2"}) as trainer:
            trainer.loops.begin(iteration)
            trainer.do("update")
            trainer.loops.close()
            (span,) = trainer.telemetry.spans("rl.train")
            parents.add((span.trace_id, span.parent_id))
    assert len(parents) == 1


def test_an_iteration_that_is_done_again_has_a_trace_of_its_own_on_every_rank() -> None:
    parents: dict[str, list[object]] = {}
    for rank in ("0", "1"):
        with following({"RANK": rank, "WORLD_SIZE": "2"}) as trainer:
            for _ in range(2):
                trainer.loops.begin(3)
                trainer.do("update")
                trainer.loops.close()
            parents[rank] = [(span.trace_id, span.parent_id) for span in trainer.telemetry.spans("rl.train")]
    assert parents["0"] == parents["1"]
    assert len(set(parents["0"])) == 2


@pytest.mark.parametrize("wrong", [{"phase": "checkpoint"}, {"phase": "train", "operation": SAVE.operation}])
def test_a_table_that_makes_no_sense_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="saved or restored"):
        Timed(**wrong)


def test_what_a_call_did_is_counted_with_the_phase_that_it_was(trainer: Trainer) -> None:
    patches, asked = trainer.telemetry.session.patches, []

    def counts(call: Call) -> dict[str, float]:
        asked.append(call.result)
        return {"samples": 8}

    sys.modules["framework"].collect = lambda body: body()  # type: ignore[attr-defined]
    patches.watch("framework:collect", **trainer.loops.phase(PHASES["generate"], counts))
    trainer.loops.begin()
    trainer.do("collect")
    trainer.do("evaluate", 1.0, lambda: trainer.do("collect"))
    trainer.loops.close()
    assert len(asked) == 1
    assert trainer.telemetry.value("rl.sample.samples") == 8


@pytest.mark.parametrize("inside", [False, True])
def test_who_lets_go_of_an_iteration_leaves_nothing_of_it_current(trainer: Trainer, inside: bool) -> None:
    telemetry = trainer.telemetry
    telemetry.session.patches.when_undone(trainer.loops.stop)
    trainer.loops.begin(1)
    if inside:
        trainer.do("generate", 1.0, lambda: trainer.do("score", 1.0, rlotel.uninstrument))
    else:
        rlotel.uninstrument()
    assert context.current() is None
    assert not trace.get_current_span().get_span_context().is_valid


def test_an_iteration_that_waits_to_be_logged_is_recorded_when_it_is_let_go_of(trainer: Trainer) -> None:
    trainer.telemetry.session.patches.when_undone(trainer.loops.stop)
    trainer.loops.begin(1)
    trainer.do("update", 2.0)
    trainer.loops.end()
    rlotel.uninstrument()
    (loop,) = trainer.telemetry.spans("rl.loop")
    assert loop.end_ns - loop.start_ns == 2_000_000_000


class OnDevice:
    """A tensor on an accelerator: whoever looks at what it is waits for it."""

    device = types.SimpleNamespace(type="cuda")

    def __bool__(self) -> bool:
        raise AssertionError("it is waited for")

    __float__ = __eq__ = __mul__ = __bool__  # type: ignore[assignment]


def test_a_value_on_an_accelerator_is_refused_and_not_waited_for(trainer: Trainer) -> None:
    trainer.loops.begin()
    trainer.loops.tell({"kl": OnDevice(), "mfu": OnDevice(), "loss": 0.5}, GAUGES)
    trainer.loops.close()
    assert trainer.telemetry.points("rl.kl.divergence") == trainer.telemetry.points("rl.train.mfu") == []
    assert trainer.telemetry.value("rl.train.loss", **{"rl.loss.type": "policy"}) == 0.5
    refused = trainer.telemetry.points("rlotel.values.refused", **{"rlotel.refusal.reason": "device_tensor"})
    assert sum(point.value or 0 for point in refused) == 3
