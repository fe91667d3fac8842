"""V1 through the whole chain: launcher, Ray, the trainer's actor and the workers that make rollouts."""

from rlotel import conformance
from rlotel.capture import SpanNode
from rlotel.otlp_records import frozen
from tests.frameworks.verl.comparing import differences, loops, own, phase
from tests.frameworks.verl.conftest import Run

ROWS = 8
"""Rollouts of an iteration."""


def rollouts(root: SpanNode) -> list[SpanNode]:
    return [child for child in root.children if child.span.resource != root.span.resource]


def test_each_iteration_is_a_trace_over_three_processes(v1: Run) -> None:
    for number, root in enumerate(loops(v1), 1):
        assert root.span.attributes["rl.loop.iteration"] == number
        saved = [("checkpoint", None)] if number > 1 else []
        assert [phase(span) for span in own(root)] == [
            ("sample", None),
            ("logprob", "actor"),
            ("ref_logprob", "reference"),
            ("advantage", None),
            ("train", "actor"),
            *saved,
            ("sync", None),
        ]
        made = rollouts(root)
        assert len(made) == ROWS
        assert len({node.span.resource["service.instance.id"] for node in (root, *made)}) == 3
        for node in made:
            assert phase(node.span) == ("sample", None)
            assert node.span.attributes["rl.loop.iteration"] == number
            assert sorted(phase(part.span)[0] for part in node.children) == ["reward", "tool"]


def test_the_trainer_waits_and_the_workers_generate(v1: Run) -> None:
    for root in loops(v1):
        waits = [span for span in own(root) if span.name == "rl.sample"]
        assert {span.attributes["rl.sample.kind"] for span in waits} == {"wait"}
        assert {node.span.attributes["rl.sample.kind"] for node in rollouts(root)} == {"generate"}
    (waited,) = v1.capture.latest("rl.sample.duration")
    assert (waited.attributes["rl.sample.kind"], waited.count) == ("wait", 3)


def test_durations_are_verls_own(v1: Run) -> None:
    measured = differences(v1)
    assert measured.keys() >= {"step", "gen", "update_weights", "save_checkpoint"}
    for name, over in measured.items():
        assert min(over) > -0.0001, name
        assert min(over) < 0.001, name
        assert max(over) < 0.25, name


def test_weights_that_move_before_the_first_iteration_are_timed(v1: Run) -> None:
    (transfers,) = v1.capture.latest("rl.sync.duration")
    assert transfers.count == 4
    assert float(transfers.sum or 0) >= v1.worked("update_weights")
    (first,) = [span for span in v1.capture.spans("rl.sync") if "rl.loop.iteration" not in span.attributes]
    assert first.parent_id in (None, "")


def test_scoring_is_timed_in_the_workers_once_a_batch(v1: Run) -> None:
    scored = v1.capture.latest("rl.reward.duration")
    assert [point.count for point in scored] == [3, 3]
    for point in scored:
        assert float(point.sum or 0) >= 3 * 0.02
    for name in ("sample", "reward", "tool"):
        stragglers = v1.capture.latest("rl.worker.duration", **{"rl.phase.name": name})
        assert [point.count for point in stragglers] == [3, 3], name


def test_counts_are_those_of_the_rows(v1: Run) -> None:
    tokens = sum(ROWS * (data["prompt_length/mean"] + data["response_length/mean"]) for data in v1.trained)
    counted = {
        "rl.sample.samples": 3 * ROWS,
        "rl.sample.episodes": 3 * ROWS,
        "rl.sample.tokens": tokens,
        "rl.train.tokens": tokens,
        "rl.train.steps": 3 * 2,
    }
    assert {metric: v1.total(metric) for metric in counted} == counted


def test_only_the_owner_of_a_metric_reports_it(v1: Run) -> None:
    trainer = loops(v1)[0].span.resource["service.instance.id"]
    for metric in ("rl.loop.duration", "rl.train.duration", "rl.train.loss", "rl.environment.reward.mean"):
        assert {point.resource["service.instance.id"] for point in v1.capture.points(metric)} == {trainer}
    status = v1.capture.latest("rl.run.status", **{"rl.run.state": "completed"})
    assert [point.value for point in status] == [1.0]
    assert {point.resource["service.instance.id"] for point in status} != {trainer}
    assert {point.attributes["rl.system"] for point in v1.capture.points("rl.run.status")} == {"verl"}


def test_every_process_belongs_to_the_same_run(v1: Run) -> None:
    assert len({point.attributes["rl.run.id"] for point in v1.capture.points()}) == 1
    for point in v1.capture.points("rl.worker.duration"):
        assert (point.attributes["rl.system"], point.attributes["rl.algorithm"]) == ("verl", "GRPO")


def test_nothing_breaks_the_conventions_or_is_sent_twice(v1: Run) -> None:
    assert conformance.check(v1.lines) == []
    spans = [(span.trace_id, span.span_id) for span in v1.capture.spans()]
    assert len(spans) == len(set(spans))
    points = [(frozen(point.resource), point.series, point.time_ns) for point in v1.capture.points()]
    assert len(points) == len(set(points))
    assert v1.total("rlotel.errors") == 0
