"""`rlotel.loop`, `sample`, `reward`, `train`, `sync`, `phase`, `checkpoint`: what a user puts around their code.

Each is a context manager, an async one, and a decorator of functions, coroutines and generators. The session is
looked up when the code runs, so a function may be decorated before `instrument()` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from rlotel import context, session
from rlotel.decorating import decorated
from rlotel.handles import NOTHING, Handle, Number
from rlotel.semconv import attributes as attr
from rlotel.words import CHECKPOINT, REWARD, SAMPLE, SYNC, TRAIN

if TYPE_CHECKING:
    from rlotel.instruments import Value
    from rlotel.phases import Interval, Loop, Phase
    from rlotel.recorder import Recorder

Function = TypeVar("Function", bound=Callable[..., Any])
_State = tuple["Recorder", "context.Entered | None"]
"""Where an open interval is told, and what was current before it."""
Opener = Callable[["Recorder"], "Interval | None"]
Closer = Callable[["Recorder", Any, "BaseException | None"], None]


class Bracket:
    """Something to put around code: a block, or, as a decorator, every call.

    May be entered again, also inside of itself and in many threads and tasks at once.
    """

    __slots__ = ("_close", "_inside", "_open")

    def __init__(self, open_: Opener, close: Closer) -> None:
        self._open = open_
        self._close = close
        self._inside: dict[Interval, _State] = {}

    def __enter__(self) -> Handle:
        return self.begin(current=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)

    async def __aenter__(self) -> Handle:
        return self.begin(current=True)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)

    def __call__(self, function: Function) -> Function:
        """Decorate a function, coroutine function, generator or asynchronous generator."""
        return cast(Function, decorated(lambda: Bracket(self._open, self._close), function))

    def begin(self, *, current: bool) -> Handle:
        """Open it; `current` makes it the one that further phases here are inside of. Never raises."""
        recorder = session.recorder()
        if recorder is None:
            return NOTHING
        try:
            interval = self._open(recorder)
            if interval is None:
                return NOTHING
            self._inside[interval] = recorder, context.enter(interval) if current else None
            return Handle(recorder, interval)
        except Exception as error:  # noqa: BLE001 - the user's block runs whatever happens to ours
            recorder.faults.report("begin", error)
            return NOTHING

    def end(self, failure: BaseException | None) -> None:
        """Close it; `failure` is what its code raised. Never raises."""
        try:
            interval, (recorder, entered) = self._innermost()
        except KeyError:
            return
        try:
            if entered is not None:
                context.leave(entered)
            self._close(recorder, interval, failure)
        except Exception as error:  # noqa: BLE001 - the user's own exception is what the user sees
            recorder.faults.report("end", error)

    def _innermost(self) -> tuple[Interval, _State]:
        """Take what ends: what is current here, or, where another is by now, what was entered last."""
        here = context.current()
        if here is not None and (state := self._inside.pop(here, None)) is not None:
            return here, state
        return self._inside.popitem()


def _close_loop(recorder: Recorder, loop: Loop, error: BaseException | None) -> None:
    recorder.close_loop(loop, error)


def _close_phase(recorder: Recorder, phase: Phase, error: BaseException | None) -> None:
    recorder.close_phase(phase, error)


def _is(value: object, word: str) -> bool:
    """Whether it is this word. A stranger's `==` may raise, and this runs in the user's own call."""
    return type(value) is str and value == word


def _phase(
    function: Function | None,
    name: str,
    metric_attributes: dict[str, Value | None],
    span_attributes: dict[str, int | None],
    *,
    waits: bool = False,
) -> Bracket | Function:
    bracket = Bracket(
        lambda recorder: recorder.open_phase(name, metric_attributes, span_attributes, waits=waits), _close_phase
    )
    return bracket if function is None else bracket(function)


@overload
def loop(iteration: Function, /) -> Function: ...
@overload
def loop(iteration: int | None = None) -> Bracket: ...
def loop(iteration: int | Function | None = None) -> Bracket | Function:
    """One iteration: sample, reward, train, sync. It is the root of a trace.

    Args:
        iteration: its number, on the span only; without it loops are counted from 0.
    """
    if callable(iteration):
        return Bracket(lambda recorder: recorder.open_loop(), _close_loop)(iteration)
    return Bracket(lambda recorder: recorder.open_loop(iteration), _close_loop)


@overload
def sample(function: Function, /) -> Function: ...
@overload
def sample(
    *, batch_size: int | None = None, kind: Literal["generate", "wait"] = "generate", role: str | None = None
) -> Bracket: ...
def sample(
    function: Function | None = None,
    /,
    *,
    batch_size: int | None = None,
    kind: Literal["generate", "wait"] = "generate",
    role: str | None = None,
) -> Bracket | Function:
    """Rollouts are made (`generate`), or the trainer stands waiting for them (`wait`, which is idle time)."""
    return _phase(
        function,
        SAMPLE,
        {attr.SAMPLE_KIND.name: kind, attr.ROLE.name: role},
        {attr.SAMPLE_BATCH_SIZE.name: batch_size},
        waits=_is(kind, attr.SampleKind.WAIT.value),
    )


@overload
def reward(function: Function, /) -> Function: ...
@overload
def reward(*, sandbox: str | None = None, role: str | None = None) -> Bracket: ...
def reward(
    function: Function | None = None, /, *, sandbox: str | None = None, role: str | None = None
) -> Bracket | Function:
    """Rollouts are scored. `sandbox` names the kind of sandbox that runs the verifier, never one instance."""
    return _phase(function, REWARD, {attr.REWARD_SANDBOX.name: sandbox, attr.ROLE.name: role}, {})


@overload
def train(function: Function, /) -> Function: ...
@overload
def train(*, batch_size: int | None = None, role: str | None = None) -> Bracket: ...
def train(
    function: Function | None = None, /, *, batch_size: int | None = None, role: str | None = None
) -> Bracket | Function:
    """The learner updates a model: forward, backward, optimizer. `role` says which one if there are several."""
    return _phase(function, TRAIN, {attr.ROLE.name: role}, {attr.TRAIN_BATCH_SIZE.name: batch_size})


@overload
def sync(function: Function, /) -> Function: ...
@overload
def sync(*, source: str | None = None, destination: str | None = None) -> Bracket: ...
def sync(
    function: Function | None = None, /, *, source: str | None = None, destination: str | None = None
) -> Bracket | Function:
    """New weights go to the rollout engines. Names are of kinds (learner, vllm), not of machines."""
    return _phase(function, SYNC, {attr.SYNC_SOURCE.name: source, attr.SYNC_DESTINATION.name: destination}, {})


def phase(name: str, *, role: str | None = None) -> Bracket:
    """Any other part of a loop: data, logprob, ref_logprob, value, advantage, evaluate, or a word of one's own."""
    if _is(name, SAMPLE):
        return sample(role=role)
    return cast(Bracket, _phase(None, name, {attr.ROLE.name: role}, {}))


def checkpoint(
    operation: Literal["save", "restore"],
    *,
    tier: str,
    step: int | None = None,
    bytes: Number = None,  # noqa: A002 - the word the reader expects
    blocking: bool = True,
) -> Bracket:
    """A checkpoint is saved or restored. Once a save has ended it counts as durable.

    Args:
        operation: save or restore.
        tier: where to: ram, local_disk, peer, object_storage or parallel_fs.
        step: the training step it holds.
        bytes: its size.
        blocking: whether training stands still meanwhile.
    """
    attributes: dict[str, Value | None] = {
        attr.CHECKPOINT_OPERATION.name: operation,
        attr.CHECKPOINT_TIER.name: tier,
        attr.CHECKPOINT_BLOCKING.name: blocking,
    }

    def open_(recorder: Recorder) -> Phase | None:
        opened = recorder.open_phase(CHECKPOINT, attributes, {})
        if bytes is not None and opened is not None:
            recorder.add(opened, bytes=bytes)
        return opened

    def close(recorder: Recorder, opened: Phase, error: BaseException | None) -> None:
        recorder.close_phase(opened, error)
        if _is(operation, attr.CheckpointOperation.SAVE.value) and error is None:
            recorder.saved(tier, step)

    return Bracket(open_, close)
