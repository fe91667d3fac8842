"""The view: a header and four panels, one for each golden signal, that fit a terminal of 80 by 24."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rlotel.demo import amounts
from rlotel.demo.blocks import Fitted, bar, sparkline
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.words import IDLE, REWARD, SAMPLE, SYNC, TRAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from rlotel.demo.signals import Phase, Signals
    from rlotel.semconv.types import Metric

WIDTH, HEIGHT = 80, 24
"""The smallest terminal that it fits."""

# The terminal's own colours: they are chosen to be read on its background, light or dark.
_COLOURS = {SAMPLE: "cyan", REWARD: "magenta", TRAIN: "green", SYNC: "yellow", IDLE: "dim"}
_OTHER_COLOUR = "blue"
_GOOD, _BAD, _QUIET = "green", "bold red", "dim"
_LONG_OPEN_SECONDS = 2.0
_LONG_OPEN_TIMES = 3.0


def view(signals: Signals, goal: int, elapsed: float, note: str = "") -> RenderableType:
    """All of it.

    Args:
        signals: what arrived.
        goal: iterations that are planned.
        elapsed: seconds since the start.
        note: a line below the panels.
    """
    usual = signals.loop().median
    iteration = "" if usual is None else f"iteration {amounts.seconds(usual)}"
    grid = Table.grid(expand=True)
    grid.add_column(ratio=23)
    grid.add_column(ratio=17)
    grid.add_row(_panel("latency", iteration, _latency(signals), 12), _panel("traffic", "", _traffic(signals), 12))
    grid.add_row(
        _panel("errors", "and learning", _errors(signals), 9), _panel("saturation", "", _saturation(signals), 9)
    )
    return Group(
        _header(signals, goal, elapsed), grid, Text(note, style=_QUIET, no_wrap=True, overflow="ellipsis")
    )


def _panel(name: str, more: str, content: RenderableType, height: int) -> Panel:
    title = Text.assemble((name, "bold not dim"), (f" {more}" if more else "", _QUIET))
    return Panel(content, title=title, title_align="left", box=box.ROUNDED, border_style=_QUIET, height=height)


def _header(signals: Signals, goal: int, elapsed: float) -> RenderableType:
    names = (attr.ALGORITHM, attr.MODEL_NAME, attr.ENVIRONMENT_NAME)
    what = " · ".join(str(signals.identity[name.name]) for name in names if name.name in signals.identity)
    run = str(signals.identity.get(attr.RUN_ID.name, ""))
    first = Table.grid(expand=True)
    first.add_column(no_wrap=True)
    first.add_column(justify="right", no_wrap=True)
    first.add_row(Text.assemble(("rlotel demo", "bold"), f"  {what}"), Text(f"run {run}" if run else "", _QUIET))
    second = Table.grid(expand=True, padding=(0, 1))
    second.add_column(ratio=1)
    second.add_column(justify="right", no_wrap=True)
    second.add_row(
        ProgressBar(goal, signals.iteration, style=_QUIET, complete_style=_GOOD, finished_style=_GOOD),
        Text.assemble((f"{signals.iteration}/{goal}", "bold"), f"  {amounts.clock(elapsed)}"),
    )
    return Group(first, second)


def _latency(signals: Signals) -> RenderableType:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_row(*(Text(word, _QUIET) for word in ("", "share", "", "p50", "last")))
    for phase in signals.phases()[-8:]:
        table.add_row(*_phase(phase))
    return Group(table, _open_now(signals))


def _phase(phase: Phase) -> Sequence[RenderableType]:
    colour = _COLOURS.get(phase.name, _OTHER_COLOUR)
    share = phase.share
    filled = Fitted(lambda width: bar(share or 0.0, width), colour)
    times = ("", "") if phase.name == IDLE else (amounts.seconds(phase.median), amounts.seconds(phase.last))
    return Text(phase.name, colour), filled, amounts.share(share), *times


def _open_now(signals: Signals) -> Text:
    """What is open: ages grow by themselves, so a phase that hangs shows though it reports nothing."""
    text = Text(no_wrap=True, overflow="ellipsis").append("open now  ", _QUIET)
    usual = {phase.name: phase.median or 0.0 for phase in signals.phases()}
    open_now = signals.open_now()
    for name, age in open_now.items():
        is_long = age > max(_LONG_OPEN_SECONDS, _LONG_OPEN_TIMES * usual.get(name, 0.0))
        text.append(f"{name} {amounts.seconds(age)}  ", _BAD if is_long else _COLOURS.get(name, _OTHER_COLOUR))
    return text if open_now else text.append("nothing", _QUIET)


def _traffic(signals: Signals) -> RenderableType:
    rows = []
    for name, metric in (("tokens/s", m.TOKENS_RATE), ("samples/s", m.SAMPLES_RATE)):
        rows.append(_line(name, amounts.count(signals.value(metric))))
        rows.append(_spark(signals.history(metric), "cyan", floor=0.0))
    per_gpu = signals.value(m.TOKENS_RATE_PER_GPU)
    rows.append(_line("tokens/s a GPU", "no GPU: absent" if per_gpu is None else amounts.count(per_gpu)))
    for name, metric in (
        ("samples", m.SAMPLE_SAMPLES),
        ("tokens sampled", m.SAMPLE_TOKENS),
        ("tokens trained", m.TRAIN_TOKENS),
        ("train steps", m.TRAIN_STEPS),
    ):
        rows.append(_line(name, amounts.count(signals.total(metric))))
    rows.append(_line("weights synced", amounts.size(signals.total(m.SYNC_SIZE))))
    return Group(*rows)


def _errors(signals: Signals) -> RenderableType:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right", min_width=8)
    table.add_column(ratio=1, no_wrap=True)
    policy = {attr.LOSS_TYPE.name: "policy"}
    for name, metric, match, colour in (
        ("reward", m.ENVIRONMENT_REWARD_MEAN, {}, "green"),
        ("policy loss", m.TRAIN_LOSS, policy, "magenta"),
        ("KL", m.KL_DIVERGENCE, {}, "yellow"),
        ("entropy", m.ENTROPY, {}, "blue"),
        ("grad norm", m.GRAD_NORM, {}, "cyan"),
    ):
        table.add_row(*_health(signals, name, metric, match, colour))
    return Group(table, _failures(signals))


def _health(
    signals: Signals, name: str, metric: Metric, match: dict[str, str], colour: str
) -> tuple[RenderableType, ...]:
    history = signals.history(metric, **match)
    # Present before and absent now: it was not finite, and no old value stands in for it.
    is_gone = any(value is not None for value in history) and history[-1] is None
    value = Text("not finite", _BAD) if is_gone else Text(amounts.level(history[-1] if history else None), "bold")
    return Text(name), value, _spark(history, colour)


def _failures(signals: Signals) -> RenderableType:
    errors = [(phase.name, error) for phase in signals.phases() for error in phase.errors]
    last = "".join(f"  {name}: {error.rpartition('.')[2]}" for name, error in errors[-1:])
    grid = Table.grid(expand=True)
    for _ in range(3):
        grid.add_column(ratio=1, no_wrap=True)
    grid.add_row(
        _tally("non-finite", signals.total(m.TRAIN_NONFINITE)),
        _tally("restarts", signals.total(m.RESTARTS)),
        _tally("refused", signals.total(m.RLOTEL_VALUES_REFUSED)),
    )
    return Group(_tally("failed", len(errors) if signals.spans else None, last), grid)


def _tally(name: str, value: float | None, detail: str = "") -> Text:
    colour = _QUIET if value is None else _BAD if value else _GOOD
    return Text.assemble((f"{name} ", _QUIET), (amounts.count(value), colour), (detail, "red"))


def _saturation(signals: Signals) -> RenderableType:
    idle = signals.history(m.LOOP_IDLE_RATIO)
    rows: list[RenderableType] = [
        _line("idle", amounts.share(idle[-1] if idle else None)),
        _spark(idle, "yellow", floor=0.0, top=1.0),
    ]
    mfu = signals.history(m.TRAIN_MFU)
    if mfu:
        whole = amounts.share(signals.value(m.LOOP_MFU))
        rows.append(_line("MFU", f"train {amounts.share(mfu[-1])}, loop {whole}"))
        rows.append(_spark(mfu, "green", floor=0.0))
    else:
        rows.append(_line("MFU", "no GPU: absent"))
    rows.append(_line("staleness", amounts.count(signals.value(m.SAMPLE_STALENESS))))
    rows.append(_line("last progress", f"{amounts.seconds(signals.value(m.PROGRESS_AGE))} ago"))
    step, age = signals.value(m.CHECKPOINT_STEP), signals.value(m.CHECKPOINT_AGE)
    saved = "none yet" if step is None else f"step {step:.0f}, {amounts.seconds(age)} ago"
    rows.append(_line("checkpoint", saved))
    return Group(*rows)


def _line(name: str, value: str) -> RenderableType:
    grid = Table.grid(expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(Text(name), Text(value, _QUIET if "absent" in value else "bold"))
    return grid


def _spark(
    values: Sequence[float | None], colour: str, floor: float | None = None, top: float | None = None
) -> RenderableType:
    return Fitted(lambda width: sparkline(values, width, floor, top), colour)
