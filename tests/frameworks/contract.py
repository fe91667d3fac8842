"""What every integration promises, whatever the framework: names, the shape of a trace, nothing twice, all undone.

A framework's `test_contract.py` has `class TestContract(Contract)`, says what is particular to it, and gives it a
finished run of the real trainer as the fixture `seen`.
"""

import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rlotel import conformance
from rlotel.capture import SpanNode
from rlotel.semconv import metrics
from tests.frameworks.running import OFFLINE, Run, phase

ROUNDING_NS = 50_000
"""Spans' wall times are taken apart from their durations."""
UNDOING = Path(__file__).parent / "undoing.py"


class Contract:
    """The promises, as tests."""

    framework: str
    """Its name in the list of known frameworks."""
    identity: Mapping[str, str]
    """What every point and span must say of the run, `rl.system` first."""
    iterations: Sequence[int]
    """The numbers of the iterations, in order."""
    phases: frozenset[str]
    """Phases that each iteration has, in the process that has the loop."""
    counted: frozenset[str]
    """Metrics that must have come, beside the durations of the phases."""
    modules: Sequence[str]
    """Modules of the framework in which something is watched."""
    elsewhere: frozenset[str] = frozenset()
    """Metrics of the loop that are told where the work is done, such as rewards in rollout workers."""
    overlaps: bool = False
    """Whether work that an iteration began may outlive it."""
    ahead: bool = False
    """Whether ranks beside the loop's may begin an iteration before it does."""

    def test_each_iteration_is_one_trace_with_its_phases(self, seen: Run) -> None:
        assert [root.span.attributes["rl.loop.iteration"] for root in seen.loops] == list(self.iterations)
        assert len({root.span.trace_id for root in seen.loops}) == len(seen.loops)
        for root in seen.loops:
            assert root.span.parent_id in (None, "")
            own = [node for node in root.children if node.span.resource == root.span.resource]
            assert self.phases <= {phase(node.span) for node in own}

    def test_a_phase_lies_within_what_it_is_inside_of(self, seen: Run) -> None:
        def look(node: SpanNode) -> None:
            for child in node.children:
                here = child.span.resource == node.span.resource
                assert child.span.start_ns >= node.span.start_ns - ROUNDING_NS or (self.ahead and not here)
                if not self.overlaps and here:
                    assert child.span.end_ns <= node.span.end_ns + ROUNDING_NS
                look(child)

        for root in seen.loops:
            look(root)

    def test_an_iteration_and_each_of_its_phases_is_observed_once(self, seen: Run) -> None:
        assert seen.observations("rl.loop.duration") == len(self.iterations)
        for name in self.phases & {"sample", "reward", "train", "sync"}:
            for point in seen.capture.latest(f"rl.{name}.duration"):
                assert (point.count or 0) <= len(self.iterations), point

    def test_what_is_of_the_loop_is_told_by_one_process(self, seen: Run) -> None:
        tellers = defaultdict(set)
        for point in seen.capture.points():
            metric = metrics.BY_NAME.get(point.name)
            told = metric is not None and metric.owner == "loop" and point.name not in self.elsewhere
            if told and point.attributes.get("rl.sample.kind") is None:
                tellers[point.name].add(point.resource["service.instance.id"])
        assert {name for name, instances in tellers.items() if len(instances) > 1} == set()
        assert "rl.loop.duration" in tellers

    def test_what_is_promised_was_told(self, seen: Run) -> None:
        assert self.counted - set(seen.capture.names()) == set()

    def test_everything_says_whose_it_is(self, seen: Run) -> None:
        for point in seen.capture.points():
            if point.name.startswith("rl.") and point.name != "rl.run.status":
                assert self.identity.items() <= point.attributes.items(), point
        for span in seen.capture.spans():
            assert self.identity.items() <= span.resource.items(), span
        assert len({point.attributes["rl.run.id"] for point in seen.capture.points("rl.loop.duration")}) == 1

    def test_nothing_breaks_the_conventions(self, seen: Run) -> None:
        assert conformance.check(seen.lines) == []

    def test_nothing_is_sent_twice(self, seen: Run) -> None:
        spans = Counter((span.trace_id, span.span_id) for span in seen.capture.spans())
        points = Counter((point.series, point.time_ns) for point in seen.capture.points())
        assert [key for key, times in (*spans.items(), *points.items()) if times > 1] == []

    def test_no_error_of_ours_and_no_value_that_was_refused(self, seen: Run) -> None:
        assert "inside rlotel" not in seen.output
        assert seen.total("rlotel.errors") == 0
        assert [p.attributes for p in seen.capture.latest("rlotel.values.refused") if p.value] == []

    def test_the_run_is_said_to_have_ended_well(self, seen: Run) -> None:
        states = {str(p.attributes["rl.run.state"]): p.value for p in seen.capture.latest("rl.run.status")}
        assert {state for state, value in states.items() if value} == {"completed"}

    def test_uninstrument_leaves_no_trace_in_the_framework(self, tmp_path: Path) -> None:
        done = subprocess.run(
            [sys.executable, str(UNDOING), self.framework, *self.modules],
            cwd=tmp_path,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            pytest.fail(done.stdout[-4000:])

    def environment(self) -> dict[str, str]:
        """The variables with which the framework can be imported."""
        return {**os.environ, **OFFLINE, "RLOTEL_GPU": "0"}
