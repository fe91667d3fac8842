"""A session, from `instrument()` to its end: what it consists of, when it starts to export and how it stops."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType

from opentelemetry.sdk.resources import Resource

from rlotel import gang, handover, integrations, resource
from rlotel.carrier import arrived_identity
from rlotel.clock import Clock
from rlotel.collectors.election import Node
from rlotel.collectors.gpu import GpuCollector
from rlotel.config import Config
from rlotel.delivery import Delivery
from rlotel.ending import state_of
from rlotel.errors import Faults, log
from rlotel.handover import ATTEMPT, LAUNCHER, RUN_ID
from rlotel.identity import IDENTITY, Identity, attempt, launch
from rlotel.ids import Ids
from rlotel.instruments import Instruments, Readings
from rlotel.lifetime import Lifetime
from rlotel.patching import Patches
from rlotel.process import Process
from rlotel.providers import Providers
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import RunState
from rlotel.tracing import Tracing
from rlotel.version import __version__

IDENTITY_WAIT, WORKER_WAIT = 60.0, 15.0
"""Seconds that a process with no loop waits for its identity before it exports: imports are slow, workers die."""
EXIT_BOUND = 5.0
"""Seconds that the end of a process may take longer because of rlotel."""
WORKER_EXIT = 2.0
"""The same for a worker: whoever waits for its GPU to be free does not wait longer."""

SCOPE = "rlotel"
"""The instrumentation scope of everything we record."""
SCHEMA_URL = f"urn:rlotel:semconv:{__version__}"

Factory = Callable[[Resource, Delivery], Providers]


class Session:
    """What `instrument()` opened. Also a context manager that closes it, for tests and notebooks."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        clock: Clock,
        factory: Factory,
        close: Callable[[Session, RunState | None], None],
        on_fault: Callable[[str, Exception], None] = lambda _place, _error: None,
    ) -> None:
        self.config = config
        self.faults = Faults(self._count_fault)
        launched = handover.launched(environ)
        self.process = Process(
            launcher=not launched and gang.rank(environ) == 0,
            rank=gang.rank(environ),
            attempt=(environ.get(ATTEMPT) if launched else None) or launch(environ),
            handover=self._handover,
            flush=lambda seconds: self.flush(seconds, urgent=True),
        )
        self.identity = Identity(config, environ)
        self.instruments = Instruments(self.faults)
        self.tracing = Tracing(lambda: self.identity.run_id, self.process.attempt)
        self.patches = Patches(self.faults)
        self.recorder = Recorder(
            config,
            self.identity,
            self.instruments,
            self.tracing,
            self.faults,
            clock,
            self.process,
            freeze=self._loop_begins,
            stir=self._stir,
            settle=self._settle,
        )
        self.instruments.watch(m.RUN_STATUS, self._status)
        self._factory = factory
        self._close = close
        self._on_fault = on_fault
        self._environ = environ
        self._state = RunState.RUNNING
        self._facts = resource.Facts(config, environ)
        self._freezing = threading.RLock()
        self._providers: Providers | None = None
        self._started = False
        self._child = False
        self._loop_begun = self._loop_reported = False
        self._gpus: GpuCollector | None = None
        if config.gpu:
            self._gpus = GpuCollector(self.recorder, config, Node(self.run_id), announce=self._stir)
            self.process.on_role = self._gpus.role
        self._lifetime = Lifetime(
            finish=self._finish,
            preempted=self._preempted,
            on_fork_child=self._forked,
            freeze=self._freeze,
            freeze_after=WORKER_WAIT if launched else IDENTITY_WAIT,
            waits=self.identity.waits,
            patches=self.patches,
            faults=self.faults,
        )
        self.instruments.relieve = lambda: self._lifetime.soon(self.instruments.drain)

    @property
    def run_id(self) -> str:
        """The run's id, known from the start."""
        return self.identity.run_id

    def flush(self, timeout: float = EXIT_BOUND, *, urgent: bool = False) -> bool:
        """Export what was recorded so far; settles the identity if nothing has yet.

        Args:
            timeout: seconds it may take.
            urgent: the process may be killed afterwards, so that metrics can't keep their distance of 5 s.

        Returns:
            Whether all of it arrived within `timeout` seconds.
        """
        self._freeze()
        return self._providers.flush(timeout, urgent=urgent) if self._providers is not None else False

    def hear(self, config: Config) -> None:
        """Use what another `instrument()` says of the run, until the first loop; all else it says is not used."""
        said = {name for name, source in config.sources.items() if source == "argument"}
        about = {name: getattr(config, name) for name in said & IDENTITY - {"run_id"}}
        used = set(about) if self.identity.insist(**about) else set()
        if gpus := said & {"gpus", "peak_flops", "peak_bandwidth"}:
            was = self.recorder.hardware
            self.recorder.hardware = replace(
                was,
                gpus=config.gpus or was.gpus,
                peak_flops=config.peak_flops or was.peak_flops,
                peak_bandwidth=config.peak_bandwidth or was.peak_bandwidth,
            )
            used |= gpus
        if unused := said - used:
            log.warning(
                "rlotel: already running, so these arguments of instrument() are not used: %s. Give them where it "
                "was started, or as RLOTEL_* variables.",
                ", ".join(sorted(unused)),
            )

    def close(self) -> None:
        """Put back everything that was patched, export one last time and stop. Takes at most 5 s."""
        self._close(self, None)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(self, state_of(error))

    # The session's life.

    def start(self, frameworks: tuple[str, ...]) -> None:
        """Connect the integrations; a launcher also starts its clock and marks the processes to come."""
        integrations.connect(frameworks, self.patches, self.recorder, self.faults)
        self._facts.start()
        if self.process.launcher:
            self.patches.set_item(os.environ, ATTEMPT, self.tracing.attempt)
            self.patches.set_item(os.environ, RUN_ID, self.run_id)
            self.patches.set_item(os.environ, LAUNCHER, handover.this_process())
            self._stir()

    def end(self, state: RunState | None) -> None:
        """Undo, export one last time and stop; bounded."""
        self.patches.undo()
        with self.faults.contain("end of a session"):
            self._lifetime.stop()
            self._finish(state or RunState.COMPLETED, EXIT_BOUND)
            if self._gpus is not None:
                self._gpus.stop()
        self.instruments.unbind()
        self.tracing.reset()
        self.recorder.ages.reset()  # or what is still open would count as current in the next session

    def _stir(self) -> None:
        """A worker that had nothing to say has something now: its identity is settled after the same wait."""
        if not self._started:
            self._started = True
            with self.faults.contain("start of a session"):  # there may be no thread or no socket to have
                if self._child:
                    self._lifetime.stir()
                else:
                    self._lifetime.start()
            if self._gpus is not None:
                self._gpus.start()
        # What has arrived is settled: there is nothing to wait for.
        if self._providers is None and self.identity.adopt(arrived_identity()):
            self._freeze()

    def _settle(self) -> None:
        self._stir()
        self._freeze()

    def _loop_begins(self) -> None:
        self.process.loop = "here"
        if not self._loop_begun:
            self._stir()
            self._freeze(loop=True)
            self._loop_zeros()
            self._loop_begun = True
            if self._gpus is not None:
                self._gpus.loop_began()

    def _freeze(self, *, loop: bool = False) -> None:
        """Settle the identity and start exporting, once.

        Takes some milliseconds; half a second at most where a metadata server still owes its answer.
        """
        with self._freezing, self.faults.contain("start of exporting"):
            if self._providers is not None or not (self._started or loop):
                return
            identity = self.identity.freeze()
            facts = {**self._facts.get(), **self.process.facts()}
            found = resource.build(self.config, identity, facts, self._environ)
            self._providers = self._factory(found, Delivery(self.instruments.add))
            self._zeros(loop)
            meter = self._providers.meter_provider.get_meter(SCOPE, __version__, schema_url=SCHEMA_URL)
            self.instruments.bind(meter, identity)
            tracer_provider = self._providers.tracer_provider
            ids = getattr(tracer_provider, "id_generator", None)
            self.tracing.bind(
                tracer_provider.get_tracer(SCOPE, __version__, schema_url=SCHEMA_URL),
                ids if isinstance(ids, Ids) else None,
            )

    def _zeros(self, loop: bool) -> None:
        self.instruments.start_at_zero("process")
        if self.process.launcher:
            self.instruments.start_at_zero("launcher")
            if restarts := attempt(self._environ):
                self.instruments.add(
                    m.RESTARTS, restarts, {attr.RESTART_REASON.name: attr.RestartReason.UNKNOWN.value}
                )
        if (self.process.launcher and self.process.loop != "elsewhere") or loop:
            self._loop_zeros()

    def _loop_zeros(self) -> None:
        """This process reports the loop's metrics: it launched the run, or has a loop, be it after a while."""
        if not self._loop_reported:
            self._loop_reported = True
            self.instruments.start_at_zero("loop")
            self.recorder.ages.progress()

    def _finish(self, state: RunState, seconds: float) -> None:
        """Say how the run ended and export it. In the lifetime's thread, or that of `uninstrument()`."""
        self._state = state
        self.process.ending()
        if state != RunState.COMPLETED or self.recorder.used:
            self._freeze()  # a helper program of a script that only ran past has nothing to say
        if self._providers is not None:
            self._providers.close(min(seconds, WORKER_EXIT) if self.process.worker else seconds)

    def _preempted(self, seconds: float) -> None:
        """SIGTERM came, and a handler of the user's decides what follows: export before it does."""
        self._state = RunState.PREEMPTED
        self.process.ending()
        self._freeze()
        if self._providers is not None:
            self._providers.flush(seconds, urgent=True)

    def _forked(self) -> None:
        """In a forked child: everything counted so far is the parent's to report."""
        self.process.forked()
        self._started = False
        self._child = True
        self._loop_begun = self._loop_reported = False
        self._providers = None
        self._freezing = threading.RLock()
        self.instruments.reset()
        self.tracing.reset()
        self.recorder.reset()

    def _handover(self) -> dict[str, str]:
        return handover.variables(self.config, self._environ, self.run_id, self.process.attempt)

    def _status(self) -> Readings:
        if self.process.launcher:
            for state in RunState:
                yield float(state == self._state), {attr.RUN_STATE.name: state.value}

    def _count_fault(self, place: str, error: Exception) -> None:
        self._on_fault(place, error)
        self.instruments.add(m.RLOTEL_ERRORS, 1, {attr.RLOTEL_PLACE.name: place})
