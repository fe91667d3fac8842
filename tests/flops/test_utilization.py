"""MFU and MBU: a ratio in [0, 1] or the reason for none; nothing is clipped and nothing raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel import flops
from rlotel.flops import Reason, Utilization


def test_work_over_what_the_gpus_could_have_done_is_the_mfu() -> None:
    assert flops.mfu(8e15, seconds=4, gpus=8, peak_flops=1e15) == Utilization(0.25)
    assert flops.mbu(2e12, seconds=1, gpus=1, peak_bandwidth=4e12) == Utilization(0.5)


@pytest.mark.parametrize(
    ("result", "reason", "refused"),
    [
        (flops.mfu(1e15, 10, 1, flops.peak_flops("Foo 9000")), Reason.UNKNOWN_PEAK, False),
        (flops.mfu(None, 10, 1, 1e15), Reason.UNKNOWN_WORK, False),
        (flops.mfu(1e15, 0.0, 8, 1e15), Reason.NO_TIME, False),
        (flops.mfu(1e15, 1, 0, 1e15), Reason.NO_TIME, False),
        (flops.mfu(1.057e15, 1, 1, 1e15), Reason.ABOVE_ONE, True),
        (flops.mfu(1e15, -1, 1, 1e15), Reason.NEGATIVE, True),
        (flops.mfu(float("nan"), 1, 1, 1e15), Reason.NOT_FINITE, True),
        (flops.mfu(1e15, float("nan"), 1, 1e15), Reason.NOT_FINITE, True),
        (flops.mfu(1e15, 1, 1, float("inf")), Reason.NOT_FINITE, True),
        (flops.accept(1.057), Reason.ABOVE_ONE, True),
        (flops.accept(float("inf")), Reason.NOT_FINITE, True),
    ],
)
def test_what_cannot_be_has_no_value_and_says_why(result: Utilization, reason: Reason, refused: bool) -> None:
    assert (result.value, result.reason, result.refused) == (None, reason, refused)


def test_a_frameworks_own_ratio_is_taken_as_it_is() -> None:
    assert flops.accept(0.382) == Utilization(0.382)
    assert flops.accept(1) == Utilization(1.0)


_NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@given(_NUMBERS | st.none(), _NUMBERS, _NUMBERS, _NUMBERS | st.none())
def test_any_numbers_give_a_ratio_or_a_reason(
    work: float | None, seconds: float, gpus: float, peak: float | None
) -> None:
    result = flops.mfu(work, seconds, gpus, peak)
    if result.value is None:
        assert result.reason is not None
    else:
        assert result.reason is None
        assert not result.refused
        assert 0 <= result.value <= 1


@given(st.lists(st.tuples(st.floats(0, 1e18), st.floats(1e-3, 1e5)), min_size=1, max_size=6))
def test_a_window_over_several_phases_lies_between_its_best_and_worst(
    phases: list[tuple[float, float]],
) -> None:
    ratios = [work / (seconds * 8 * 1e15) for work, seconds in phases]
    together = sum(work for work, _ in phases) / sum(seconds * 8 * 1e15 for _, seconds in phases)
    total = flops.utilization(
        sum(work for work, _ in phases), sum(flops.capacity(seconds, 8, 1e15) or 0 for _, seconds in phases)
    )
    if total.value is not None:
        assert total.value == pytest.approx(together)
        assert min(ratios) * (1 - 1e-9) <= total.value <= max(ratios) * (1 + 1e-9)
    else:
        assert total.refused
        assert together > 1 - 1e-9
