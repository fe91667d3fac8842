"""The arithmetic of time, against an independent computation: unions, and shares that add up."""

import contextvars
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlotel
from rlotel.brackets import Bracket
from rlotel.testing import Telemetry, captured

NAMES = ("sample", "reward", "train", "data")
LENGTH = 30
"""Seconds of the loop; everything happens at whole seconds, so that the expected can be counted."""

stretches = st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)).map(lambda pair: (min(pair), max(pair)))
Stretch = tuple[int, int]
Interval = tuple[str, Stretch, bool]
"""A phase's name, when it is open, and whether it is a wait instead."""
intervals = st.lists(st.tuples(st.sampled_from(NAMES), stretches, st.booleans()), max_size=12)


def covered(spans: list[Stretch]) -> int:
    """How many whole seconds lie in any of the spans: counted, not computed."""
    return len({second for start, end in spans for second in range(start, end)})


def shared(works: dict[str, list[Stretch]]) -> dict[str, float]:
    """Each second belongs to the names that are open in it, equally, or is idle."""
    shares = dict.fromkeys((*works, "idle"), Fraction())
    for second in range(LENGTH):
        names = [name for name, spans in works.items() if any(start <= second < end for start, end in spans)]
        for name in names or ["idle"]:
            shares[name] += Fraction(1, len(names) or 1)
    return {name: float(share) for name, share in shares.items() if share}


def durations(telemetry: Telemetry) -> dict[str, float]:
    """Each phase's duration, waits aside."""
    return {
        str(point.attributes.get("rl.phase.name", point.name.split(".")[1])): point.sum or 0.0
        for point in telemetry.points()
        if point.kind == "histogram"
        and point.attributes.get("rl.sample.kind") != "wait"
        and "loop" not in point.name
    }


def phase_times(telemetry: Telemetry) -> dict[str, float]:
    return {str(p.attributes["rl.phase.name"]): p.value for p in telemetry.points("rl.phase.time") if p.value}


def play(telemetry: Telemetry, drawn: list[Interval]) -> None:
    """One loop in which each interval is open in a context of its own, as in a thread of its own."""
    played: list[tuple[Stretch, Bracket, contextvars.Context]] = []
    with rlotel.loop():
        for name, stretch, waits in drawn:
            bracket = rlotel.sample(kind="wait") if waits else rlotel.phase(name)
            played.append((stretch, bracket, contextvars.copy_context()))
        for second in range(LENGTH + 1):
            for (start, _), bracket, context in played:
                if start == second:
                    context.run(bracket.__enter__)
            for (_, end), bracket, context in played:
                if end == second:
                    context.run(bracket.__exit__, None, None, None)
            telemetry.clock.advance(second < LENGTH)


@settings(max_examples=60)
@given(intervals)
def test_a_duration_is_the_union_of_its_intervals_and_shares_add_up(drawn: list[Interval]) -> None:
    works: dict[str, list[Stretch]] = {}
    for name, stretch, waits in drawn:
        if not waits:
            works.setdefault(name, []).append(stretch)
    with captured() as telemetry:
        play(telemetry, drawn)
        assert durations(telemetry) == {name: covered(spans) for name, spans in works.items()}
        shares = phase_times(telemetry)
        assert shares == pytest.approx(shared(works))
        assert sum(shares.values()) == pytest.approx(LENGTH)


@settings(max_examples=60)
@given(st.lists(stretches, min_size=1, max_size=10))
def test_phases_told_of_afterwards_in_any_order_add_up_too(drawn: list[Stretch]) -> None:
    with captured() as telemetry:
        recorder = telemetry.session.recorder
        start = recorder.now()
        telemetry.clock.advance(100)
        loop = recorder.open_loop(at=start)
        for began, ended in drawn:
            phase = recorder.open_phase("reward", inside=loop, at=start + began)
            recorder.close_phase(phase, at=start + ended)
        recorder.close_loop(loop, at=start + LENGTH)
        assert durations(telemetry) == {"reward": covered(drawn)}
        assert phase_times(telemetry) == shared({"reward": drawn})


@settings(max_examples=60)
@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
def test_time_inside_of_each_other_belongs_to_the_innermost(nested: list[str]) -> None:
    with captured() as telemetry:

        def enter(depth: int) -> None:
            telemetry.clock.advance(1)
            if depth < len(nested):
                with rlotel.phase(nested[depth]):
                    enter(depth + 1)

        with rlotel.loop():
            enter(0)
        assert phase_times(telemetry) == {"idle": 1, **{name: nested.count(name) for name in nested}}


def test_ten_thousand_small_phases_are_one_observation(telemetry: Telemetry) -> None:
    with rlotel.loop():
        for _ in range(10_000):
            with rlotel.reward():
                telemetry.clock.advance(0.25)
            telemetry.clock.advance(0.25)
    (point,) = telemetry.points("rl.reward.duration")
    assert (point.count, point.sum) == (1, 2500)
    assert phase_times(telemetry) == {"reward": 2500, "idle": 2500}


def effort(rollouts: int) -> float:
    """Bytecodes of ours for one of so many rollouts that are open at once, each with its reward inside."""
    ours = str(Path(rlotel.__file__).parent)
    steps = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        if not frame.f_code.co_filename.startswith(ours):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    with captured() as telemetry:
        brackets = [(rlotel.sample(), rlotel.reward(), contextvars.copy_context()) for _ in range(rollouts)]
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with rlotel.loop():
                for step in ("__enter__", "__exit__"):
                    for outer, inner, context in brackets:
                        for bracket in (outer, inner) if step == "__enter__" else (inner, outer):
                            telemetry.clock.advance(1)
                            context.run(getattr(bracket, step), *([None] * 3 if step == "__exit__" else []))
        finally:
            sys.settrace(before)
    return steps / rollouts


def test_a_rollout_costs_the_same_however_many_others_are_open() -> None:
    assert effort(400) < 1.5 * effort(40)


def test_as_many_phases_as_there_are_between_two_exports_are_all_observed(telemetry: Telemetry) -> None:
    with rlotel.loop():
        pass
    instruments = telemetry.session.instruments
    for _ in range(5):
        for _ in range(6_000):
            with rlotel.sync():
                telemetry.clock.advance(0.25)
        deadline = time.monotonic() + 10
        while len(instruments._waiting) >= 10_000 and time.monotonic() < deadline:
            threading.Event().wait(0.01)
    (point,) = telemetry.points("rl.sync.duration")
    assert (point.count, point.sum) == (30_000, 7_500)
    assert not telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "queue_full"})
