"""One import: a run is read, told over again and sent."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from opentelemetry.sdk.resources import Resource

from rlotel import resource
from rlotel.config import Config
from rlotel.identity import Identity
from rlotel.importing.records import Logged, Losses, Run, Unreadable
from rlotel.importing.replay import Replay, Sent
from rlotel.importing.runs import read
from rlotel.logged.rows import flat
from rlotel.logged.tables import Table
from rlotel.transports import Request

AHEAD = 24 * 3600.0
"""Seconds that a line may be of the future: clocks differ, and time zones that nobody wrote down."""


@dataclass
class Outcome:
    """What became of a run."""

    run: Run
    run_id: str
    losses: Losses = field(default_factory=Losses)
    logged: Counter[str] = field(default_factory=Counter)
    """How often each key was logged."""
    calls: int = 0
    began: float | None = None
    ended: float | None = None
    iterations: int = 0
    scores: list[str] = field(default_factory=list)
    """Keys of evaluations."""
    unmapped: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Keys of the table that were never logged."""
    sent: Sent = field(default_factory=Sent)
    faults: list[tuple[str, Exception]] = field(default_factory=list)
    """Errors inside rlotel."""


def run(
    found: Run,
    table: Table,
    config: Config,
    environ: Mapping[str, str],
    send: Callable[[Request, float], None],
    progress: Callable[[Outcome], None] = lambda _outcome: None,
    since: float = -math.inf,
) -> Outcome:
    """Import one run.

    Args:
        found: the run.
        table: what its keys mean.
        config: the settings; what they say of the run's identity wins.
        environ: the environment, for the attributes of the Resource.
        send: takes each request, with the time of the latest of it.
        progress: told now and then how far it is.
        since: telemetry from before is not sent, in seconds since 1970.

    Raises:
        Unreadable: there is nothing in it, or a file is not what its name says.
    """
    named = replace(config, run_id=config.run_id or found.name)
    identity = Identity(named, {})
    identity.offer(system=table.system or found.system)
    outcome = Outcome(found, identity.run_id)
    records = _counted(read(found, table, outcome.losses), outcome, progress)
    first = next(records, None)
    if first is None:
        raise Unreadable(f"{found.files[0]}: nothing in it can be imported{_why(outcome.losses)}")
    replay = Replay(named, _resource(named, identity, environ), identity, table, first.time, send, since)
    for logged in _with(first, records):
        replay.take(logged)
        outcome.iterations, outcome.sent = replay.rows.iterations, replay.sent
    replay.end()
    outcome.iterations, outcome.faults = replay.rows.iterations, replay.faults
    outcome.scores = [key for key in outcome.logged if table.of_evaluation(key) is not None]
    outcome.unmapped = list(replay.rows.unmapped)
    outcome.missing = [key for key in table.entries if key not in replay.rows.mapped]
    return outcome


def _counted(records: Iterator[Logged], outcome: Outcome, progress: Callable[[Outcome], None]) -> Iterator[Logged]:
    latest = time.time() + AHEAD
    for logged in records:
        if logged.time > latest:
            outcome.losses.ahead += 1
            continue
        outcome.calls += 1
        outcome.began = logged.time if outcome.began is None else min(outcome.began, logged.time)
        outcome.ended = logged.time if outcome.ended is None else max(outcome.ended, logged.time)
        outcome.logged.update(key for key, _ in flat(logged.values))
        progress(outcome)
        yield logged


def _with(first: Logged, rest: Iterator[Logged]) -> Iterator[Logged]:
    yield first
    yield from rest


def _why(losses: Losses) -> str:
    if losses.untimed:
        return (
            f": {losses.untimed} lines have no time. Say in the table which key has it, as `time: …`: seconds or "
            "milliseconds since 1970, or ISO 8601"
        )
    if losses.ahead:
        return f": {losses.ahead} lines are of the future"
    return f": {losses.lines} lines are no JSON objects" if losses.lines else ""


def _resource(config: Config, identity: Identity, environ: Mapping[str, str]) -> Resource:
    """Of the run, not of this process: the same each time it is imported."""
    instance = hashlib.sha256(identity.run_id.encode()).hexdigest()[:12]
    facts = {"service.instance.id": f"import-{instance}"}
    if config.location:
        facts["location"] = config.location
    return resource.build(config, identity.freeze(), facts, environ)
