"""What only shows in a process of its own: randomness, forks, interrupted stacks and imports."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rlotel import capture

Program = Callable[..., "subprocess.CompletedProcess[str]"]

RANDOMNESS = """
import json, random, sys
import numpy
try:
    import torch
except ImportError:
    torch = None
random.seed(42); numpy.random.seed(42)
if torch: torch.manual_seed(42)
import rlotel
if {instrumented}:
    rlotel.instrument(capture="capture.jsonl", export_interval=0.05)
for number in range(20):
    with rlotel.loop(iteration=number) as loop:
        loop.set(reward=0.5)
        with rlotel.sample() as sample:
            sample.add(samples=8, completion_tokens=80)
        with rlotel.train():
            numpy.random.random()
if {instrumented}:
    session = rlotel.instrument()
    session.flush(10); session.flush(10)
    rlotel.uninstrument()
print(json.dumps([
    repr(random.getstate()), repr(numpy.random.get_state()), random.random(), numpy.random.random(),
    torch.get_rng_state().tolist() if torch else None,
]))
"""


def test_no_generator_of_random_numbers_moves(program: Program, tmp_path: Path) -> None:
    plain = program(RANDOMNESS.format(instrumented=False)).stdout
    instrumented = program(RANDOMNESS.format(instrumented=True)).stdout
    assert json.loads(instrumented) == json.loads(plain)
    assert len(capture.read(tmp_path / "capture.jsonl").spans("rl.loop")) == 20


def test_processes_with_the_same_seed_have_traces_of_their_own(program: Program, tmp_path: Path) -> None:
    for number in range(2):
        program(
            f"""
            import random; random.seed(42)
            import rlotel
            with rlotel.instrument(run_id="r{number}", capture="{number}.jsonl"), rlotel.loop(), rlotel.train():
                pass
            """
        )
    one, two = ({span.span_id for span in capture.read(tmp_path / f"{n}.jsonl").spans()} for n in range(2))
    assert len(one) == len(two) == 2
    assert not one & two


def test_a_restart_of_a_run_has_traces_of_its_own(program: Program, tmp_path: Path) -> None:
    for number in range(2):
        program(
            f"""
            import rlotel
            with rlotel.instrument(run_id="r", capture="{number}.jsonl"), rlotel.loop(iteration=1):
                pass
            """
        )
    one, two = (capture.read(tmp_path / f"{n}.jsonl").spans() for n in range(2))
    assert one[0].trace_id != two[0].trace_id


def test_a_forked_child_counts_only_its_own(program: Program, tmp_path: Path) -> None:
    program(
        """
        import multiprocessing, os, threading
        import rlotel
        from rlotel.session import recorder

        def child():
            assert recorder() is not None
            with rlotel.reward():
                pass
            with rlotel.loop(iteration=7), rlotel.train() as train:
                train.add(steps=1)

        rlotel.instrument(run_id="r", capture="capture.jsonl")
        with rlotel.loop(iteration=1), rlotel.train() as train:
            train.add(steps=10)
        with rlotel.loop(iteration=2), rlotel.sample():
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            process.join(30)
            assert process.exitcode == 0, process.exitcode
        """
    )
    seen = capture.read(tmp_path / "capture.jsonl")
    steps = {point.resource["process.pid"]: point.value for point in seen.latest("rl.train.steps")}
    assert set(steps.values()) == {1, 10}
    loops = {span.attributes["rl.loop.iteration"]: span for span in seen.spans("rl.loop")}
    assert set(loops) == {1, 2, 7}
    (reward,) = seen.spans("rl.reward")
    assert reward.trace_id == loops[2].trace_id  # made inside of the parent's sample phase
    assert len(seen.latest("rl.run.status")) == len(
        {p.attributes["rl.run.state"] for p in seen.latest("rl.run.status")}
    )
    assert len({point.resource["service.instance.id"] for point in seen.all_points}) == 2


def test_a_forked_child_that_leaves_its_parents_loop_does_not_report_it(program: Program, tmp_path: Path) -> None:
    program(
        """
        import os, sys
        import rlotel
        rlotel.instrument(run_id="r", capture="capture.jsonl")
        try:
            with rlotel.loop(iteration=1), rlotel.train() as train:
                pid = os.fork()
                if pid == 0:
                    train.add(steps=1)
                    raise RuntimeError("the child leaves by an exception")
                os.waitpid(pid, 0)
        except RuntimeError:
            rlotel.uninstrument()
            os._exit(0)
        rlotel.uninstrument()
        """
    )
    seen = capture.read(tmp_path / "capture.jsonl")
    assert [span.name for span in seen.spans()] == ["rl.train", "rl.loop"]
    assert [span.status_code for span in seen.spans()] == ["unset", "unset"]
    assert sum(point.count or 0 for point in seen.latest("rl.loop.duration")) == 1


@pytest.mark.parametrize("exporting", [False, True])
def test_a_fork_while_other_threads_record_does_not_hang(program: Program, exporting: bool) -> None:
    program(
        f"""
        import os, threading
        import rlotel
        session = rlotel.instrument(run_id="r", capture="capture.jsonl", export_interval=0.05)
        stop = threading.Event()

        def work():
            while not stop.is_set():
                with rlotel.train() as train:
                    train.add(steps=1)
                if {exporting}:
                    session.flush(0)

        with rlotel.loop():
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(20):
                pid = os.fork()
                if pid == 0:
                    with rlotel.loop(), rlotel.train() as train:
                        train.add(steps=1)
                    os._exit(0)
                _, status = os.waitpid(pid, 0)
                assert status == 0
            stop.set()
            for thread in threads:
                thread.join()
        """,
        timeout=90,
    )


def test_a_process_that_may_open_nothing_more_trains_all_the_same(program: Program) -> None:
    done = program(
        """
        import resource
        import rlotel
        with rlotel.instrument(capture="before.jsonl"), rlotel.loop():
            pass  # so that all that is imported is there
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        with rlotel.instrument(capture="capture.jsonl"), rlotel.loop() as loop:
            loop.set(entropy=1)
        print("trained")
        """
    )
    assert done.stdout == "trained\n"
    assert "training is not affected" in done.stderr


def test_what_the_garbage_collector_calls_may_record(program: Program) -> None:
    program(
        """
        import gc
        import rlotel
        rlotel.instrument(run_id="r", capture="capture.jsonl", export_interval=0.05)
        gc.set_threshold(10, 2, 2)
        watch = rlotel.phase("watch").__enter__()
        inside = []

        def collected(phase, info):
            if not inside:
                inside.append(1)
                watch.add(flops=1)
                watch.set(reward=0.5, entropy=float("nan"))
                watch.score("pause", 0.1)
                inside.clear()

        gc.callbacks.append(collected)
        for number in range(200):
            with rlotel.loop(iteration=number) as loop, rlotel.train() as train:
                train.add(steps=1, flops=2)
                loop.set(entropy=0.1)
        gc.callbacks.clear()
        rlotel.uninstrument()
        """,
        timeout=90,
    )


def test_a_signal_handler_may_use_it_at_any_moment(program: Program) -> None:
    program(
        """
        import signal, time
        import rlotel
        rlotel.instrument(run_id="r", capture="capture.jsonl", export_interval=0.05)

        def handler(number, frame):
            with rlotel.reward() as reward:
                reward.set(reward=0.5)

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        for number in range(2000):
            with rlotel.loop(iteration=number) as loop, rlotel.train() as train:
                train.add(steps=1)
                loop.set(entropy=0.1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        rlotel.uninstrument()
        """,
        timeout=90,
    )


def test_it_may_be_interrupted_between_any_two_instructions(program: Program, tmp_path: Path) -> None:
    # What a signal handler or a gc callback may do, done at every seventh instruction of ours, each time others.
    program(
        """
        import sys
        import rlotel

        ours = rlotel.__path__[0]
        instructions = 0

        def interrupt(frame, event, arg):
            if not frame.f_code.co_filename.startswith(ours):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            global instructions
            instructions += event == "opcode"
            if event == "opcode" and instructions % 7 == 0:
                with rlotel.reward() as reward:
                    reward.set(reward=0.5)
            return interrupt

        rlotel.instrument(run_id="r", capture="capture.jsonl")
        for number in range(3):
            with rlotel.loop(iteration=number):
                pass
            sys.settrace(interrupt)
            with rlotel.loop(iteration=number), rlotel.train() as train:
                train.add(steps=1)
            sys.settrace(None)
        rlotel.uninstrument()
        """
    )
    seen = capture.read(tmp_path / "capture.jsonl")
    assert [point.value for point in seen.latest("rl.train.steps")] == [3]
    assert not [point for point in seen.latest("rlotel.errors") if point.value]
    time, loops = seen.latest("rl.phase.time"), seen.latest("rl.loop.duration")
    assert sum(point.value or 0 for point in time) == pytest.approx(sum(point.sum or 0 for point in loops))


def test_importing_it_loads_no_sdk_no_network_library_and_nothing_of_the_tests(program: Program) -> None:
    heavy = (
        "grpc",
        "requests",
        "numpy",
        "pytest",
        "torch",
        "ray",
        "google.protobuf",
        "rich",
        "click",
        "opentelemetry.sdk",
    )
    loaded = json.loads(program("import json, sys, rlotel; print(json.dumps(list(sys.modules)))").stdout)
    assert [name for name in loaded if name.startswith(heavy)] == []
    program("import rlotel; assert rlotel.Session.__module__.startswith('rlotel')")


def test_used_without_a_session_it_starts_nothing(program: Program) -> None:
    program(
        """
        import sys, threading
        import rlotel
        for number in range(3):
            with rlotel.loop(iteration=number) as loop, rlotel.train() as train:
                loop.set(reward=1)
                train.add(steps=1)
        assert threading.active_count() == 1
        assert "opentelemetry.sdk" not in sys.modules
        """
    )
