"""One run of the demo: a receiver, rlotel switched on, training, and everything closed again."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import rlotel
from rlotel.demo import loop
from rlotel.demo.checkpoints import Checkpoints
from rlotel.demo.mishaps import Mishaps
from rlotel.demo.sandbox import Sandbox
from rlotel.demo.settings import Settings
from rlotel.demo.signals import Signals
from rlotel.demo.state import Run, start
from rlotel.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlotel.demo.loop import Iteration


EXPORT_SECONDS = 1.0
"""Between exports: what a view that is alive needs. A real run exports every 15 s."""


@dataclass(frozen=True)
class Options:
    """What `rlotel demo` was asked for."""

    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    endpoint: str | None = None
    protocol: str | None = None
    capture: Path | None = None
    gpus: int | None = None
    peak_flops: float | None = None
    mishaps: Mishaps = field(default_factory=Mishaps)
    restart: bool = False

    @property
    def checkpoint_every(self) -> int:
        """Iterations from one checkpoint to the next; 3 is the least that leaves two to go back over."""
        return max(3, self.settings.iterations // 8)

    @property
    def restart_after(self) -> int | None:
        """The iteration to restart after: late, just before a checkpoint, and with two to go back to.

        None if there is none, or no restart is wanted.
        """
        every, iterations = self.checkpoint_every, self.settings.iterations
        late = range(max(2 * every, iterations * 3 // 5), iterations + 1)
        return next((number for number in late if number % every == every - 1), None) if self.restart else None


@dataclass
class Outcome:
    """What a run has come to so far; complete once it has ended."""

    options: Options
    run_id: str = ""
    endpoint: str = ""
    """Where the telemetry goes."""
    receiver: Receiver | None = None
    """What receives it, unless it goes elsewhere."""
    capture: Path | None = None
    """The file of what was received."""
    iterations: list[Iteration] = field(default_factory=list)
    """Those that ended well, in order."""
    seconds: float = 0.0
    """How long training took."""
    interrupted: bool = False
    """Whether it was ended by Ctrl-C."""
    weights: str = ""
    """SHA-256 of the policy's weights."""

    def signals(self) -> Signals | None:
        """What arrived at the receiver, if there is one."""
        if self.receiver is None:
            return None
        signals = Signals()
        signals.take(self.receiver.capture)
        return signals


class Show(AbstractContextManager["Show"], Protocol):
    """Shows a run while it goes on, from when it is entered until all telemetry has been sent."""

    def begins(self, outcome: Outcome) -> None:
        """Training starts; the outcome fills from now on."""

    def finished(self, iteration: Iteration) -> None:
        """An iteration ended well."""


def run(options: Options, show: Show) -> Outcome:
    """Train to the end or to Ctrl-C.

    Raises:
        rlotel.SettingError: the endpoint, or what else rlotel was told, cannot be used.
        OSError: the capture file cannot be opened.
    """
    outcome = Outcome(options)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rlotel-demo-")))
        sandbox = opened.enter_context(Sandbox())
        checkpoints = Checkpoints(folder, options.checkpoint_every)
        training = start(options.settings, options.seed, sandbox.verify, checkpoints)
        options.mishaps.befall(training)
        endpoint = options.endpoint or _receive(outcome, opened)
        opened.enter_context(show)
        opened.enter_context(_environment(local=outcome.receiver is not None))
        session = opened.enter_context(
            rlotel.instrument(
                gpu=False,  # it trains on the CPU: the peak of this machine's GPU would make a wrong MFU
                algorithm="GRPO",
                model=f"mlp-{sum(value.size for value in training.policy.parameters.values()) // 1000}k",
                environment="arithmetic",
                environment_type="simulated",
                gpus=options.gpus,
                peak_flops=options.peak_flops,
                endpoint=endpoint,
                protocol=options.protocol,
                export_interval=EXPORT_SECONDS,
            )
        )
        outcome.run_id, outcome.endpoint = session.run_id, endpoint
        show.begins(outcome)
        began = time.monotonic()
        try:
            for iteration in loop.train(training, restart_after=options.restart_after):
                outcome.iterations.append(iteration)
                show.finished(iteration)
        except KeyboardInterrupt:
            outcome.interrupted = True
        outcome.seconds = time.monotonic() - began
        outcome.weights = _digest(training)
    return outcome


def _receive(outcome: Outcome, opened: ExitStack) -> str:
    """Start the receiver, and say where it listens."""
    if outcome.options.capture is None:
        handle, path = tempfile.mkstemp(prefix="rlotel-demo-", suffix=".jsonl")
        os.close(handle)
        outcome.capture = Path(path)
    else:
        outcome.capture = outcome.options.capture
    outcome.receiver = opened.enter_context(Receiver(capture=outcome.capture))
    if outcome.options.protocol == "grpc":
        return outcome.receiver.grpc_endpoint
    return outcome.receiver.http_endpoint


@contextmanager
def _environment(local: bool) -> Iterator[None]:
    """Let spans leave as often as metrics; and let no proxy come between us and a receiver of our own."""
    before = dict(os.environ)
    changed = {"OTEL_BSP_SCHEDULE_DELAY": before.get("OTEL_BSP_SCHEDULE_DELAY", f"{EXPORT_SECONDS * 1000:.0f}")}
    if local:
        direct = before.get("no_proxy") or before.get("NO_PROXY")
        changed |= dict.fromkeys(("no_proxy", "NO_PROXY"), f"{direct},127.0.0.1" if direct else "127.0.0.1")
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in changed:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _digest(training: Run) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(training.policy.parameters.items()):
        digest.update(name.encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
