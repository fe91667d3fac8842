"""The view shows what was received, as text that fits its terminal."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import rlotel
from rlotel.capture import Capture
from rlotel.demo import amounts
from rlotel.demo.blocks import bar, sparkline
from rlotel.demo.signals import Signals
from rlotel.demo.view import HEIGHT, view
from rlotel.semconv import metrics
from rlotel.testing import Telemetry, captured


class Exports:
    """A run on a clock that stands still, exported whenever the test says so."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.capture = Capture()

    def export(self) -> None:
        new = self.telemetry.capture()
        self.capture = Capture((*self.capture.all_points, *new.all_points), new.all_spans)


def iterate(exports: Exports, number: int, reward: float, *, checkpoint: bool = False) -> None:
    """One iteration of ten seconds: two of sampling, one of scoring, half a second idle, the rest of training."""
    clock = exports.telemetry.clock
    with rlotel.loop(iteration=number):
        with rlotel.sample() as phase:
            phase.add(samples=512, prompt_tokens=20_000, completion_tokens=61_000, flops=2e12)
            clock.advance(2)
        with rlotel.reward() as phase:
            phase.set(reward=reward)
            clock.advance(1)
        with rlotel.train() as phase:
            phase.add(steps=4, tokens=81_000, flops=1.3e13)
            phase.loss(policy=1 / number)
            phase.set(kl_divergence=number / 100, entropy=2.5, grad_norm=0.25, staleness=1)
            clock.advance(6.5)
        with rlotel.sync() as phase:
            phase.add(bytes=16_000_000_000)
        clock.advance(0.5)
        if checkpoint:
            with rlotel.checkpoint("save", tier="local_disk", step=number):
                pass
    exports.export()


def picture(name: str) -> list[str]:
    return Path(__file__).with_name(f"view_{name}.txt").read_text(encoding="utf-8").splitlines()


def rendered(capture: Capture, width: int) -> list[str]:
    signals = Signals()
    signals.take(capture)
    console = Console(file=StringIO(), width=width, color_system=None, legacy_windows=False)
    with console.capture() as text:
        console.print(view(signals, goal=8, elapsed=83.2, note="a note"))
    return text.get().splitlines()


@pytest.fixture
def gpus() -> Iterator[Exports]:
    with captured(algorithm="GRPO", model="tiny", environment="sums", gpus=4, peak_flops=1e12) as telemetry:
        yield Exports(telemetry)


@pytest.fixture
def plain(telemetry: Telemetry) -> Exports:
    return Exports(telemetry)


def test_it_reads_like_this(gpus: Exports) -> None:
    for number, reward in enumerate((0.1, 0.3, 0.5), start=1):
        iterate(gpus, number, reward, checkpoint=number == 2)
    assert rendered(gpus.capture, 80) == picture("well")


def test_trouble_is_seen(plain: Exports) -> None:
    iterate(plain, 1, 0.1)
    iterate(plain, 2, math.nan)
    with pytest.raises(ValueError, match="out of ideas"), rlotel.loop(iteration=3), rlotel.train():
        plain.telemetry.clock.advance(10)
        raise ValueError("out of ideas")
    with rlotel.loop(iteration=2), rlotel.sample() as phase:
        phase.add(samples=-1)
        plain.telemetry.clock.advance(10)
    with rlotel.loop(iteration=3), rlotel.reward():
        plain.telemetry.clock.advance(30)
        plain.export()
    assert rendered(plain.capture, 120) == picture("in_trouble")


@pytest.mark.parametrize("width", [80, 93, 120, 200])
def test_it_fits_its_terminal_and_needs_no_colour(plain: Exports, width: int) -> None:
    iterate(plain, 1, 0.5, checkpoint=True)
    lines = rendered(plain.capture, width)
    assert len(lines) <= HEIGHT
    assert {len(line) for line in lines if line.startswith(("│", "╭", "╰"))} == {width}
    assert "\x1b" not in "".join(lines)


def test_before_anything_has_arrived_there_are_empty_panels_and_no_zeros_that_nobody_measured() -> None:
    text = " ".join("\n".join(rendered(Capture(), 80)).split())
    assert "0/8" in text
    for line in ("tokens/s –", "idle –", "failed –", "non-finite – restarts – refused –", "checkpoint none yet"):
        assert line in text


def test_taking_in_a_capture_bit_by_bit_comes_to_the_same_as_at_once(plain: Exports) -> None:
    bit_by_bit, at_once = Signals(), Signals()
    for number in (1, 2):
        iterate(plain, number, number / 10)
        bit_by_bit.take(plain.capture)
    at_once.take(plain.capture)
    assert vars(bit_by_bit) == vars(at_once)
    assert bit_by_bit.points == len(plain.capture.all_points)


def test_deltas_add_up_to_what_cumulative_points_say(plain: Exports) -> None:
    for number in (1, 2):
        iterate(plain, number, 0.5)
    signals = Signals()
    signals.take(
        replace(
            plain.capture,
            all_points=tuple(
                replace(point, temporality="delta", value=2.0) for point in plain.capture.points("rl.train.steps")
            ),
        )
    )
    assert signals.total(metrics.TRAIN_STEPS) == 4


numbers = st.floats(-1e9, 1e9)


@given(st.lists(st.none() | numbers, max_size=50), st.integers(1, 30))
def test_a_sparkline_has_a_character_a_value_until_it_is_full(values: list[float | None], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= set("▁▂▃▄▅▆▇█·")
    if len(values) <= width:
        assert [place == "·" for place in line] == [value is None for value in values]


@given(st.lists(numbers, min_size=2, max_size=20))
def test_a_sparkline_is_highest_where_the_values_are(values: list[float]) -> None:
    line = sparkline(values, len(values))
    assert line[values.index(max(values))] == max(line)
    assert line[values.index(min(values))] == min(line)


def test_a_sparkline_can_be_given_its_scale() -> None:
    assert sparkline([0.5, 0.6], 2, floor=0.0, top=1.0) == "▅▅"
    assert sparkline([0.5, 1.0], 2) == "▁█"
    assert sparkline([2.0, 2.0], 2) == "▄▄"


@given(st.floats(0, 1), st.integers(1, 40))
def test_a_bar_is_as_long_as_its_share_and_a_trace_shows(share: float, width: int) -> None:
    filled = bar(share, width)
    assert abs(len(filled) - share * width) < 1.1
    assert bool(filled) == (share > 0)


@pytest.mark.parametrize(
    ("say", "value", "text"),
    [
        (amounts.seconds, None, "–"),
        (amounts.seconds, 0.0, "0 s"),
        (amounts.seconds, 0.000204, "204 µs"),
        (amounts.seconds, 0.812, "812 ms"),
        (amounts.seconds, 0.9999, "1.00 s"),
        (amounts.seconds, 186.0, "3.10 min"),
        (amounts.seconds, 7200.0, "2.00 h"),
        (amounts.count, 51.2, "51.2"),
        (amounts.count, 4096, "4,096"),
        (amounts.count, 94_208, "94.2 k"),
        (amounts.count, 4_130_000, "4.13 M"),
        (amounts.size, 788_464, "788 kB"),
        (amounts.size, 48e9, "48.0 GB"),
        (amounts.size, 12, "12 B"),
        (amounts.level, -0.00213, "-0.00213"),
        (amounts.share, 0.0, "0 %"),
        (amounts.share, 0.001, "<1 %"),
        (amounts.share, 0.813, "81 %"),
        (amounts.clock, 83.9, "1:23"),
        (amounts.took, 33.6, "34 s"),
        (amounts.took, 59.7, "1 min 0 s"),
        (amounts.took, 108.2, "1 min 48 s"),
    ],
)
def test_amounts_have_three_figures_and_a_unit_that_fits(
    say: Callable[[float | None], str], value: float | None, text: str
) -> None:
    assert say(value) == text
