"""What `rlotel import` says of a run once it is through."""

from __future__ import annotations

import difflib
import time
from datetime import datetime

import click

from rlotel.importing.job import Outcome
from rlotel.importing.sending import Outlet
from rlotel.integrations.tables import Gauge
from rlotel.logged.tables import Count, Entry, Table

OLD_POINTS = 25 * 3600.0
"""Seconds: Cloud Monitoring surely takes no older point; it promises 24 hours."""
OLD_SPANS = 14 * 24 * 3600.0
"""Seconds: Cloud Trace takes no older span."""
SHOWN = 30
"""Keys of one list."""


def print_outcome(
    outcome: Outcome, table: Table, outlet: Outlet | None, since: float | None, *, preset: bool
) -> None:
    """What was, or would be, sent, and of which keys. Of a preset, with keys of all releases, many never come."""
    span = f"{day(outcome.began or 0)} to {day(outcome.ended or 0)}"
    _say(f"{outcome.run_id}: {outcome.run.kind}, {outcome.iterations:,} iterations, {span}")
    for key, entries in table.entries.items():
        if key in outcome.logged:
            meant = " and ".join(map(_said, entries))
            _say(f"  {key}: {meant}, {_times(outcome.logged[key])}")
    if outcome.scores:
        _say(f"  {', '.join(outcome.scores[:SHOWN])}: rl.evaluation.score")
    for key in () if preset else outcome.missing[:SHOWN]:
        near = difflib.get_close_matches(key, outcome.unmapped, n=1, cutoff=0.75)
        _say(f"  {key}: was never logged" + (f"; {near[0]} was" if near else ""))
    if outcome.unmapped:
        more = ", …" if len(outcome.unmapped) > SHOWN else ""
        _say(f"not in the table: {', '.join(outcome.unmapped[:SHOWN])}{more}")
    _print_losses(outcome)
    sent = f"{outcome.sent.points:,} points of {len(outcome.sent.names)} metrics and {outcome.sent.spans:,} spans"
    sent += f", from {day(since)} on" if since is not None else ""
    if outlet is None:
        _say(f"would send {sent}")
        return
    where = outlet.capture.path if outlet.capture else outlet.destinations[0].describe()
    _say(f"sent {sent}, to {where}")
    refused, words = outlet.refused
    if refused or words:
        _say(f"{refused:,} of them were refused by {words}", err=True)


def say_what_is_old(outcome: Outcome, since: float | None) -> None:
    """Warn of what Google Cloud does not take, which a collector in between does not say."""
    age = time.time() - max(outcome.began or 0.0, since or 0.0)
    what = "points from before the last 24 hours"
    if age > OLD_SPANS:
        what += " and spans from before the last 14 days"
    if age > OLD_POINTS:
        _say(
            f"The run began {age / 3600:,.0f} hours ago. If this goes to Google Cloud, {what} are refused there, "
            "even if a collector in between takes them. Give --since 24h, or import runs on the day they end.",
            err=True,
        )


def _say(text: str, *, err: bool = False) -> None:
    """Print a line: what is in files may hold anything, and a terminal obeys some of that."""
    click.echo("".join(character if character.isprintable() else "�" for character in text), err=err)


def day(moment: float) -> str:
    """A moment, in this machine's time zone."""
    return f"{datetime.fromtimestamp(moment):%Y-%m-%d %H:%M:%S}"


def _print_losses(outcome: Outcome) -> None:
    losses = outcome.losses
    if losses.lines:
        _say(f"{losses.lines:,} lines or records cannot be read, and are left out", err=True)
    if losses.ahead:
        _say(f"{losses.ahead:,} lines are of the future, and are left out", err=True)
    if losses.untimed:
        _say(f"{losses.untimed:,} lines have no time, and are left out", err=True)
    for name in losses.torn:
        _say(f"{name} breaks off: the run was killed, or is still writing", err=True)
    for place, error in outcome.faults[:1]:
        _say(f"{len(outcome.faults)} errors inside rlotel, the first in {place}: {error!r}", err=True)


def _said(entry: Entry) -> str:
    if isinstance(entry, (Gauge, Count)):
        name = str(entry.metric)
    else:
        name = f"{entry.phase}, {'seconds' if entry.factor == 1 else 'milliseconds'}"
    attributes = ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in entry.attributes.items())
    return name + (f" {{{attributes}}}" if attributes else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
