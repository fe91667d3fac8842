"""`rlotel import`: sends what the logger of a finished run wrote, as the telemetry that it would have sent."""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.status import Status

from rlotel.cli.import_report import day, print_outcome, say_what_is_old
from rlotel.cli.options import named_as_given, options_of, settled
from rlotel.config import Config
from rlotel.endpoint import resolve_all as resolve_endpoints
from rlotel.errors import SettingError
from rlotel.importing import job, runs, tables
from rlotel.importing.presets import PRESETS
from rlotel.importing.presets import preset as table_of
from rlotel.importing.records import Run, Unreadable
from rlotel.importing.sending import NotTaken, Outlet
from rlotel.logged.tables import Table
from rlotel.logged.times import moment

SETTINGS = (
    "run_id",
    "system",
    "system_version",
    "algorithm",
    "model",
    "environment",
    "environment_type",
    "gpus",
    "peak_flops",
    "peak_bandwidth",
    "endpoint",
    "protocol",
    "headers",
    "capture",
    "location",
)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class _Moment(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        if age := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text):
            return time.time() - float(age[1]) * _UNITS[age[2]]
        if (found := moment(text)) is None:
            self.fail("use an age such as 24h or 90m, or a time such as 2026-11-30T09:00", param, ctx)
        return found


@click.command(name="import", options_metavar="[OPTIONS]")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--table", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="What the keys mean.")
@click.option("--preset", "known", type=click.Choice(list(PRESETS)), help="The table of a trainer that is known.")
@click.option("--since", type=_Moment(), help="Leave out telemetry from before: an age such as 24h, or a time.")
@click.option("--dry-run", is_flag=True, help="Send nothing; say what would be sent, and which keys mean nothing.")
def import_runs(
    path: Path, table: Path | None, known: str | None, since: float | None, dry_run: bool, **options: str | None
) -> None:
    """Send what a finished run logged, as metrics and traces with the times it had.

    PATH is a file of JSON lines (Ray Tune's result.json, too), a TensorBoard event file, a W&B offline run
    (*.wandb), or a folder of them: a folder with event files is one run. Its id is --run-id, else W&B's own, or
    the name of the folder or file; of several in a folder, where they are in it.

    \b
        rlotel import runs/ppo-3 --table table.yaml --dry-run
        rlotel import runs/ --preset trl --endpoint http://collector:4318
        rlotel import wandb/offline-run-20261130_0946-x1/ --preset verl --since 24h

    A table says what each key means, in YAML or JSON, with the words of rlotel.adapters:

    \b
        system: mytrainer
        evaluation: eval/
        keys:
          reward: rl.environment.reward.mean
          train/pg_loss: {gauge: rl.train.loss, type: policy}
          time/rollout_s: {seconds: sample}
          num_tokens: {total: rl.train.tokens}

    One logged step is one iteration, as with rlotel.adapters.follow(). Ids and times follow from the run alone:
    the same import again sends the same once more, which a backend takes for what it has or refuses, so one that
    broke off is simply run again.

    Not every backend takes what is old. Google Cloud Monitoring refuses points that are more than 24 hours old, or
    older than what the series has, or less than 5 seconds after the one before (rlotel keeps that distance), and
    Cloud Trace spans of more than 14 days. Prometheus wants an out_of_order_time_window as long as the run is old.
    Without an endpoint all goes to a capture file, for `rlotel semconv check` and rlotel.capture.
    """  # noqa: D301 - click's mark for a paragraph that is not to be wrapped
    if (table is None) == (known is None):
        raise click.UsageError("say what the keys mean: by --table FILE or by --preset NAME, one of them")
    try:
        config, environ = settled(options, os.environ)
        resolve_endpoints(config, environ)
    except SettingError as error:
        raise named_as_given(error, options) from error
    meanings = table_of(known) if known else tables.read(table or Path())
    with _readable():
        found = runs.find(path)
    if len(found) > 1 and config.run_id:
        raise click.UsageError(f"--run-id names one run, and {path} has {len(found)}: {_names(found)}")
    for run in found:
        _import(run, meanings, config, environ, since, dry_run=dry_run, preset=known is not None)


def _import(
    run: Run,
    table: Table,
    config: Config,
    environ: dict[str, str],
    since: float | None,
    *,
    dry_run: bool,
    preset: bool,
) -> None:
    run_id = config.run_id or run.name
    outlet = None if dry_run else Outlet(config, environ, run_id)
    send = (lambda _request, _time: None) if outlet is None else outlet.send
    began = -math.inf if since is None else since
    with _readable(), _Progress(run) as progress:
        try:
            outcome = job.run(run, table, config, environ, send, progress, began)
        except (NotTaken, KeyboardInterrupt) as error:
            until = 0.0 if outlet is None else outlet.arrived_until
            far = f"what was logged until {day(until)} has arrived" if until > 0 else "nothing has arrived"
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"not taken by {error}"
            if outlet is not None and outlet.remote and progress.outcome is not None:
                say_what_is_old(progress.outcome, since)
            raise click.ClickException(f"{run_id}: {why}; {far}. The same command sends it again.") from error
        finally:
            if outlet is not None:
                outlet.close()
    print_outcome(outcome, table, outlet, since, preset=preset)
    if not outcome.scores and len(outcome.missing) == len(table.entries):
        raise click.ClickException("no key of the table was ever logged")
    if outlet is not None and outlet.remote:
        say_what_is_old(outcome, since)


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except Unreadable as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'a file'}: {error.strerror or error}") from error


class _Progress:
    """A line on a terminal that says how far it is."""

    def __init__(self, run: Run) -> None:
        console = Console(stderr=True, highlight=False)
        self.outcome: job.Outcome | None = None
        self._name = run.name
        self._status = Status(f"reading {run.name}", console=console) if console.is_terminal else None
        self._shown = time.monotonic()

    def __enter__(self) -> _Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, outcome: job.Outcome) -> None:
        self.outcome = outcome
        if self._status is not None and time.monotonic() - self._shown > 0.2:
            self._shown = time.monotonic()
            made = f"{outcome.iterations:,} iterations, {outcome.sent.points:,} points"
            self._status.update(f"{self._name}: until {day(outcome.ended or 0)}, {made}")


def _names(found: list[Run]) -> str:
    names = [run.name for run in found]
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


import_runs.params += options_of(SETTINGS)
