"""The same calls as decorators, of whatever kind of function."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import rlotel
from rlotel.testing import Telemetry, captured


@rlotel.reward
def decorated_before_the_session(answer: int) -> int:
    """Score an answer."""
    return answer * 2


def test_a_function_decorated_before_the_session_is_bracketed_in_it(telemetry: Telemetry) -> None:
    assert decorated_before_the_session(4) == 8
    assert decorated_before_the_session.__name__ == "decorated_before_the_session"
    assert decorated_before_the_session.__doc__ == "Score an answer."
    assert len(telemetry.spans("rl.reward")) == 1


def test_it_works_without_a_session() -> None:
    assert decorated_before_the_session(5) == 10


def test_with_and_without_arguments(telemetry: Telemetry) -> None:
    @rlotel.train(role="critic")
    def update() -> None:
        telemetry.clock.advance(1)

    @rlotel.loop
    def iteration() -> None:
        update()

    @rlotel.loop(iteration=9)
    def ninth() -> None:
        update()

    iteration()
    ninth()
    assert [span.name for span in telemetry.spans()] == ["rl.train", "rl.loop"] * 2
    assert telemetry.value("rl.train.duration", **{"rl.role": "critic"}) == 2
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")] == [0, 9]


def test_calls_of_one_function_may_be_inside_each_other(telemetry: Telemetry) -> None:
    @rlotel.phase("search")
    def search(depth: int) -> int:
        telemetry.clock.advance(1)
        return 1 + search(depth - 1) if depth else 1

    with rlotel.loop():
        assert search(3) == 4
    (point,) = telemetry.points("rl.phase.duration")
    assert (point.count, point.sum) == (1, 4)


def test_its_exception_passes_unchanged(telemetry: Telemetry) -> None:
    error = KeyError("x")

    @rlotel.sample
    def rollout() -> None:
        raise error

    with pytest.raises(KeyError) as raised:
        rollout()
    assert raised.value is error
    assert telemetry.spans("rl.sample")[0].status_code == "error"


def test_a_coroutine_function_stays_one(telemetry: Telemetry) -> None:
    @rlotel.sample(batch_size=2)
    async def rollout(value: int) -> int:
        await asyncio.sleep(0)
        telemetry.clock.advance(2)
        return value

    async def run() -> list[int]:
        async with rlotel.loop():
            return list(await asyncio.gather(rollout(1), rollout(2)))

    assert inspect.iscoroutinefunction(rollout)
    assert asyncio.run(run()) == [1, 2]
    (loop,) = telemetry.spans("rl.loop")
    assert {span.parent_id for span in telemetry.spans("rl.sample")} == {loop.span_id}
    assert telemetry.value("rl.sample.duration") == 4


def test_a_cancelled_coroutine_is_no_failure(telemetry: Telemetry) -> None:
    @rlotel.sample
    async def rollout() -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.ensure_future(rollout())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    (span,) = telemetry.spans("rl.sample")
    assert (span.status_code, span.attributes.get("error.type")) == ("unset", None)
    assert telemetry.value("rl.phase.failures", **{"rl.phase.name": "sample"}) == 0


def test_a_generator_is_bracketed_from_its_first_item_to_its_last(telemetry: Telemetry) -> None:
    @rlotel.sample
    def rollouts() -> Any:
        got = yield 1
        telemetry.clock.advance(1)
        yield got
        telemetry.clock.advance(2)
        return "done"

    items = rollouts()
    assert inspect.isgeneratorfunction(rollouts)
    telemetry.clock.advance(100)
    assert next(items) == 1
    with rlotel.reward():  # the consumer's: not inside of the generator's phase
        pass
    assert items.send("sent") == "sent"
    with pytest.raises(StopIteration) as stopped:
        next(items)
    assert stopped.value.value == "done"
    assert telemetry.value("rl.sample.duration") == 3
    assert telemetry.spans("rl.reward")[0].parent_id is None


def test_a_generator_that_is_left_early_has_not_failed(telemetry: Telemetry) -> None:
    @rlotel.sample
    def rollouts() -> Iterator[int]:
        yield from range(10)

    for item in rollouts():
        if item == 2:
            break
    assert telemetry.spans("rl.sample")[0].status_code == "unset"
    assert telemetry.points("rl.phase.age") == []


def test_an_asynchronous_generator_is_itself_to_its_consumer(telemetry: Telemetry) -> None:
    seen: list[object] = []

    @rlotel.sample
    async def rollouts() -> AsyncIterator[object]:
        try:
            seen.append((yield 1))
            telemetry.clock.advance(5)
            yield 2
        except ValueError as error:
            seen.append(error)
            yield 3
        finally:
            seen.append("closed")

    async def run() -> list[object]:
        items = rollouts()
        first = await items.asend(None)  # type: ignore[attr-defined]
        second = await items.asend("sent")  # type: ignore[attr-defined]
        third = await items.athrow(error)  # type: ignore[attr-defined]
        await items.aclose()  # type: ignore[attr-defined]
        return [first, second, third]

    error = ValueError()
    assert inspect.isasyncgenfunction(rollouts)
    assert asyncio.run(run()) == [1, 2, 3]
    assert seen == ["sent", error, "closed"]
    (span,) = telemetry.spans("rl.sample")
    assert (span.status_code, span.end_ns - span.start_ns) == ("unset", 5_000_000_000)


def test_an_asynchronous_generator_fails_with_its_own_exception(telemetry: Telemetry) -> None:
    error = RuntimeError()

    @rlotel.sample
    async def rollouts() -> AsyncIterator[int]:
        yield 1
        raise error

    async def run() -> None:
        async for _ in rollouts():
            pass

    with pytest.raises(RuntimeError) as raised:
        asyncio.run(run())
    assert raised.value is error
    assert telemetry.spans("rl.sample")[0].attributes["error.type"] == "RuntimeError"


def test_methods_of_every_kind(telemetry: Telemetry) -> None:
    class Trainer:
        @rlotel.train
        def update(self) -> object:
            return self

        @rlotel.train
        @classmethod
        def make(cls) -> object:
            return cls

        @classmethod
        @rlotel.train
        def build(cls) -> object:
            return cls

        @rlotel.train
        @staticmethod
        def step(value: int) -> int:
            return value

    trainer = Trainer()
    assert (trainer.update(), Trainer.make(), trainer.build(), trainer.step(3)) == (trainer, Trainer, Trainer, 3)
    assert len(telemetry.spans("rl.train")) == 4


def test_async_with_is_as_with(telemetry: Telemetry) -> None:
    async def run() -> None:
        async with rlotel.loop(iteration=1):
            async with rlotel.train() as train:
                telemetry.clock.advance(1)
                train.add(steps=1)
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(run())
    train, loop = telemetry.spans()
    assert (train.name, train.parent_id, train.status_code) == ("rl.train", loop.span_id, "unset")
    assert loop.attributes["error.type"] == "LookupError"


def test_a_session_that_ends_within_a_call_does_not_break_it() -> None:
    @rlotel.train
    def update(telemetry: Telemetry) -> str:
        telemetry.session.close()
        return "result"

    with captured() as telemetry:
        assert update(telemetry) == "result"
