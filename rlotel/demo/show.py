"""How a run is shown while it goes on: the view in a terminal, plain lines everywhere else."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.text import Text

from rlotel.demo import amounts
from rlotel.demo.signals import Signals
from rlotel.demo.view import HEIGHT, WIDTH, view

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console, RenderableType

    from rlotel.demo.loop import Iteration
    from rlotel.demo.run import Outcome

_FRAMES_PER_SECOND = 4
_log = logging.getLogger("rlotel")


def fits(console: Console) -> bool:
    """Whether the view can be shown here: a terminal that moves its cursor, draws blocks, and is large enough."""
    able = console.file.isatty() and not console.is_dumb_terminal and not console.options.ascii_only
    return able and console.width >= WIDTH and console.height >= HEIGHT


class Screen(logging.Handler):
    """The view, on the terminal's other screen; its last frame stays on the first one.

    What rlotel logs meanwhile would destroy it, so that is kept: the view has the last of it, the rest follows.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console
        self._signals = Signals()
        self._said: list[str] = []
        self._began = time.monotonic()
        self._outcome: Outcome | None = None
        self._live = Live(
            console=console, screen=True, refresh_per_second=_FRAMES_PER_SECOND, get_renderable=self._frame
        )

    def __enter__(self) -> Screen:
        _log.addHandler(self)
        self._propagated, _log.propagate = _log.propagate, False
        return self

    def begins(self, outcome: Outcome) -> None:
        """Training starts."""
        self._outcome = outcome
        self._began = time.monotonic()
        self._live.start()

    def finished(self, iteration: Iteration) -> None:
        """An iteration ended well: the view learns of it from the telemetry."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        _log.removeHandler(self)
        _log.propagate = self._propagated
        if self._outcome is not None:
            self._console.print(self._view(self._outcome, note=""))
        for said in self._said:
            self._console.print(Text(said, "yellow"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is logged."""
        self._said.append(record.getMessage())

    def _frame(self) -> RenderableType:
        if self._outcome is None:
            return ""
        hint = f"Ctrl-C ends the run. Shown is what arrives at {self._outcome.endpoint}."
        return self._view(self._outcome, note=self._said[-1] if self._said else hint)

    def _view(self, outcome: Outcome, note: str) -> RenderableType:
        if outcome.receiver is not None:
            self._signals.take(outcome.receiver.capture)
        elapsed = outcome.seconds or time.monotonic() - self._began
        return view(self._signals, outcome.options.settings.iterations, elapsed, note)


class Lines:
    """A line an iteration.

    Args:
        to_stderr: whether standard output is needed for something else.
    """

    def __init__(self, *, to_stderr: bool) -> None:
        self._to_stderr = to_stderr
        self._goal = 0

    def __enter__(self) -> Lines:
        return self

    def begins(self, outcome: Outcome) -> None:
        """Training starts."""
        self._goal = outcome.options.settings.iterations
        click.echo(f"run {outcome.run_id}, telemetry to {outcome.endpoint}", err=self._to_stderr)

    def finished(self, iteration: Iteration) -> None:
        """An iteration ended well."""
        found = iteration.update.loss
        number = f"{iteration.number:>{len(str(self._goal))}}/{self._goal}"
        values = {"reward": iteration.reward, "loss": found.policy, "KL": found.kl_divergence}
        told = "".join(f"  {name} {amounts.level(value):<8}" for name, value in values.items())
        click.echo(f"iteration {number}{told}".rstrip(), err=self._to_stderr)

    def __exit__(self, *exc: object) -> None:
        pass
