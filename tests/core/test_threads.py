"""Threads and tasks: work stays in the loop and phase that handed it over."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import trace

import rlotel
from rlotel.testing import Telemetry


def score(value: int) -> int:
    with rlotel.reward():
        return value * 2


def parents(telemetry: Telemetry, name: str) -> set[tuple[str, str | None]]:
    return {(span.trace_id, span.parent_id) for span in telemetry.spans(name)}


def test_work_that_is_submitted_to_a_pool_stays_in_its_phase(telemetry: Telemetry) -> None:
    with ThreadPoolExecutor(2) as pool, rlotel.loop():
        with rlotel.sample():
            assert list(pool.map(score, range(4))) == [0, 2, 4, 6]
        assert pool.submit(score, 5).result() == 10
    (loop,) = telemetry.spans("rl.loop")
    (sample,) = telemetry.spans("rl.sample")
    assert parents(telemetry, "rl.reward") == {(loop.trace_id, sample.span_id), (loop.trace_id, loop.span_id)}


def test_a_thread_that_is_started_stays_in_its_phase(telemetry: Telemetry) -> None:
    class Worker(threading.Thread):
        def run(self) -> None:
            score(1)

    with rlotel.loop(), rlotel.sample():
        for thread in (threading.Thread(target=score, args=(1,)), Worker()):
            thread.start()
            thread.join()
            assert "run" not in vars(thread)
    (sample,) = telemetry.spans("rl.sample")
    assert parents(telemetry, "rl.reward") == {(sample.trace_id, sample.span_id)}
    assert len(telemetry.spans("rl.reward")) == 2


def test_a_pool_that_outlives_its_loop_works_for_the_next(telemetry: Telemetry) -> None:
    inside: list[bool] = []
    with ThreadPoolExecutor(1) as pool:
        for number in (1, 2):
            with rlotel.loop(iteration=number):
                pool.submit(score, 1).result()
        pool.submit(lambda: inside.append(trace.get_current_span().get_span_context().is_valid)).result()
    loops = {(span.trace_id, span.span_id) for span in telemetry.spans("rl.loop")}
    assert parents(telemetry, "rl.reward") == loops
    assert inside == [False]


def test_a_thread_that_was_there_before_works_for_the_present_loop(telemetry: Telemetry) -> None:
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        ready.wait(10)
        score(1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with rlotel.loop():
        ready.set()
        assert done.wait(10)
    thread.join()
    (loop,) = telemetry.spans("rl.loop")
    assert parents(telemetry, "rl.reward") == {(loop.trace_id, loop.span_id)}


def test_tasks_stay_in_their_phase(telemetry: Telemetry) -> None:
    async def rollout(number: int) -> None:
        async with rlotel.phase(f"rollout {number}"):
            await asyncio.sleep(0)
            await asyncio.to_thread(score, number)

    async def run() -> None:
        async with rlotel.loop(), rlotel.sample():
            await asyncio.gather(*(rollout(number) for number in range(3)))

    asyncio.run(run())
    (sample,) = telemetry.spans("rl.sample")
    phases = telemetry.spans("rl.phase")
    assert {span.parent_id for span in phases} == {sample.span_id}
    assert parents(telemetry, "rl.reward") == {(sample.trace_id, span.span_id) for span in phases}


def test_results_and_exceptions_of_submitted_work_are_its_own(telemetry: Telemetry) -> None:
    error = ValueError()

    def fail(*, message: str) -> None:
        assert message == "m"
        raise error

    with ThreadPoolExecutor(1) as pool, rlotel.loop():
        future = pool.submit(fail, message="m")
        with pytest.raises(ValueError) as raised:
            future.result()
        with pytest.raises(TypeError):
            pool.submit()  # type: ignore[call-arg]
    assert raised.value is error


def test_many_threads_at_once_lose_nothing(telemetry: Telemetry) -> None:
    def work(_: int) -> None:
        for _ in range(50):
            with rlotel.sample() as sample:
                sample.add(samples=1, completion_tokens=2)

    with ThreadPoolExecutor(8) as pool, rlotel.loop():
        list(pool.map(work, range(8)))
    assert telemetry.value("rl.sample.samples") == 400
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "completion"}) == 800
    (point,) = telemetry.points("rl.sample.duration")
    assert point.count == 1


def test_one_bracket_around_many_tasks_at_once_ends_for_each_its_own(telemetry: Telemetry) -> None:
    scoring = rlotel.reward(sandbox="gvisor")

    async def task(number: int) -> None:
        async with scoring:
            await asyncio.sleep(0)
            for _ in range(number):  # the first to begin is the first to end
                await asyncio.sleep(0)
            telemetry.clock.advance(1)
            if number == 2:
                raise ValueError
        with rlotel.phase("after"):
            pass

    async def main() -> None:
        with rlotel.loop():
            await asyncio.gather(*(task(number) for number in range(3)), return_exceptions=True)

    asyncio.run(main())
    rewards = sorted(telemetry.spans("rl.reward"), key=lambda span: span.end_ns)
    assert [(span.end_ns - span.start_ns) // 10**9 for span in rewards] == [1, 2, 3]
    assert [span.attributes.get("error.type") for span in rewards] == [None, None, "ValueError"]
    (loop,) = telemetry.spans("rl.loop")
    assert parents(telemetry, "rl.phase") == {(loop.trace_id, loop.span_id)}
