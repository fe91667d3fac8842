"""What a watched call held is freed when it would be without us: with the last who refers to it."""

import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from rlotel.errors import Faults
from rlotel.integrations.loops import Loops
from rlotel.integrations.tables import Timed
from rlotel.patching import Patches
from rlotel.testing import Telemetry


class Tensor:
    """Something big."""


class Model:
    """Whose calls fail while a tensor is there that nobody else knows."""

    def __init__(self) -> None:
        self.tensors: list[weakref.ref[Tensor]] = []

    def tensor(self) -> Tensor:
        made = Tensor()
        self.tensors.append(weakref.ref(made))
        return made

    def function(self) -> None:
        held = self.tensor()
        raise MemoryError(type(held))

    async def coroutine(self) -> None:
        held = self.tensor()
        raise MemoryError(type(held))

    def generator(self) -> Iterator[Tensor]:
        yield Tensor()
        held = self.tensor()
        raise MemoryError(type(held))

    async def asynchronous(self) -> AsyncIterator[Tensor]:
        yield Tensor()
        held = self.tensor()
        raise MemoryError(type(held))

    def result(self) -> Tensor:
        return self.tensor()


async def exhaust(model: Model) -> None:
    async for _ in model.asynchronous():
        pass


CALLS: dict[str, Callable[[Model], Any]] = {
    "function": lambda model: model.function(),
    "coroutine": lambda model: model.coroutine().send(None),
    "generator": lambda model: list(model.generator()),
    "asynchronous": lambda model: exhaust(model).send(None),
    "result": lambda model: model.result(),
}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", CALLS)
def test_what_a_call_held_is_freed_without_the_collector(
    telemetry: Telemetry, no_collector: None, name: str
) -> None:
    patches = Patches(Faults())
    patches.watch_method(Model, name, **Loops(telemetry.session.recorder).phase(Timed("train")))
    model = Model()
    with contextlib.suppress(MemoryError):
        CALLS[name](model)
    patches.undo()
    assert [tensor() for tensor in model.tensors] == [None]
