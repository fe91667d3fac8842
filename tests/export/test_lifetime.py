"""Exit, SIGTERM and fork: the callbacks come when they should, and the program ends as it would without us."""

import queue
import signal
import sys
import threading

import pytest

from rlotel.errors import Faults
from rlotel.lifetime import Lifetime
from rlotel.patching import Patches
from tests.export.conftest import Program

SETUP = """
import ctypes, multiprocessing, os, signal, sys, threading, time
from rlotel.errors import Faults
from rlotel.lifetime import Lifetime
from rlotel.patching import Patches

def say(*words):
    os.write(1, (" ".join(map(str, words)) + chr(10)).encode())

def finish(state, seconds):
    say("finish", state, seconds)

lifetime = Lifetime(
    finish=finish,
    preempted=lambda seconds: say("preempted", seconds),
    on_fork_child=lambda: say("child"),
    freeze=lambda: say("freeze"),
    freeze_after=60,
    patches=Patches(Faults()),
    faults=Faults(),
)

def wait():
    say("ready")
    while True:
        time.sleep(0.01)

"""
START = SETUP + "lifetime.start()\n"
DEFAULT = "finish preempted 2.5\n"


@pytest.mark.parametrize(
    ("ending", "state", "code"),
    [
        ("pass", "completed", 0),
        ("sys.exit(0)", "completed", 0),
        ("sys.exit(3)", "failed", 3),
        ("sys.exit('no data')", "failed", 1),
        ("raise ValueError", "failed", 1),
        ("raise KeyboardInterrupt", "cancelled", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGINT); wait()", "cancelled", -signal.SIGINT),
        ("threading.Thread(target=sys.exit, args=(3,)).start()", "completed", 0),
        ("t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", "completed", 0),
    ],
)
def test_how_the_program_ended_is_known_and_its_exit_code_kept(
    program: type[Program], ending: str, state: str, code: int
) -> None:
    ended = program(START + ending, {}).end()
    assert (ended.out.removeprefix("ready\n"), ended.code) == (f"finish {state} 4.5\n", code)


def test_a_finish_that_hangs_holds_the_exit_for_its_limit_only(program: type[Program]) -> None:
    hang = "finish = lambda state, seconds: time.sleep(600)\nlifetime._finish = finish\nsay('done')\nsys.exit(7)"
    ended = program(START + hang, {}).end()
    assert ended.code == 7
    assert ended.seconds_after_done < 8


def test_an_error_in_a_callback_is_contained(program: type[Program]) -> None:
    ended = program(START + "lifetime._finish = lambda *_: 1 / 0\nsys.exit(7)", {}).end()
    assert ended.code == 7
    assert "training is not affected" in ended.err


def test_sigterm_finishes_first_and_then_ends_the_program_as_ever(program: type[Program]) -> None:
    running = program(START + "wait()", {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert (ended.out, ended.code) == ("ready\n" + DEFAULT, -signal.SIGTERM)


def test_a_second_sigterm_while_the_first_is_served_changes_nothing(program: type[Program]) -> None:
    slow = "lifetime._finish = lambda *a: (say('begin'), time.sleep(1), finish(*a))\nwait()"
    running = program(START + slow, {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    running.wait_for("begin")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert (ended.out, ended.code) == ("ready\nbegin\n" + DEFAULT, -signal.SIGTERM)


def test_sigterm_ends_a_program_that_hangs_in_c(program: type[Program]) -> None:
    # A collective that never returns looks like this: no Python handler can run in the main thread.
    hang = """
mutex = ctypes.create_string_buffer(128)
lock = ctypes.CDLL(None).pthread_mutex_lock
lock(mutex)
say("ready")
lock(mutex)
"""
    running = program(START + hang, {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert (ended.out, ended.code) == ("ready\n" + DEFAULT, -signal.SIGTERM)


HANDLER = "signal.signal(signal.SIGTERM, lambda *_: (say('mine'), sys.exit(5)))\n"


def test_a_handler_of_the_users_runs_after_ours(program: type[Program]) -> None:
    running = program(SETUP + HANDLER + "lifetime.start()\nwait()", {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert ended.out.splitlines() == ["ready", "preempted 2.5", "mine", "finish preempted 4.5"]
    assert ended.code == 5


def test_a_handler_may_be_any_object_that_can_be_called(program: type[Program]) -> None:
    handler = """
class Handler:
    __hash__ = None
    def __call__(self, *_):
        say("mine")
        sys.exit(5)
signal.signal(signal.SIGTERM, Handler())
"""
    running = program(SETUP + handler + "lifetime.start()\nwait()", {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert (ended.out.splitlines(), ended.code) == (["ready", "preempted 2.5", "mine", "finish preempted 4.5"], 5)


def test_a_handler_that_lets_the_program_go_on_is_called_again(program: type[Program]) -> None:
    source = SETUP + "signal.signal(signal.SIGTERM, lambda *_: say('mine'))\nlifetime.start()\nwait()"
    running = program(source, {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    running.wait_for("mine")
    running.send(signal.SIGTERM)
    running.send(signal.SIGINT)
    ended = running.end()
    assert ended.out.splitlines()[:4] == ["ready", "preempted 2.5", "mine", "mine"]
    assert ended.out.splitlines()[-1] == "finish preempted 4.5"


def test_a_handler_installed_later_is_left_alone(program: type[Program]) -> None:
    running = program(START + HANDLER + "wait()", {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert ended.out.splitlines() == ["ready", "mine", "finish failed 4.5"]
    assert ended.code == 5


def test_a_handler_installed_later_may_call_ours(program: type[Program]) -> None:
    chain = """
ours = signal.getsignal(signal.SIGTERM)
def mine(*a):
    say("mine")
    ours(*a)
signal.signal(signal.SIGTERM, mine)
wait()
"""
    running = program(START + chain, {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert (ended.out, ended.code) == ("ready\nmine\n" + DEFAULT, -signal.SIGTERM)


def test_an_ignored_sigterm_stays_ignored(program: type[Program]) -> None:
    source = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nlifetime.start()\nwait()"
    running = program(SETUP + source, {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    running.send(signal.SIGINT)
    assert running.end().out.splitlines() == ["ready", "finish cancelled 4.5"]


def test_an_event_loop_still_gets_its_signals(program: type[Program]) -> None:
    loop = """
import asyncio
async def main():
    got = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(got.wait(), 10)
    say("got it")
asyncio.run(main())
wait()
"""
    running = program(START + loop, {})
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert (ended.out, ended.code) == ("got it\nready\n" + DEFAULT, -signal.SIGTERM)


def test_a_forked_child_has_no_thread_and_says_nothing_at_its_end(program: type[Program]) -> None:
    fork = """
if os.fork() == 0:
    say(threading.active_count())
    sys.exit(4)
say("exit", os.waitstatus_to_exitcode(os.wait()[1]))
"""
    ended = program(START + fork, {}).end()
    assert ended.out.splitlines() == ["child", "1", "exit 4", "finish completed 4.5"]


@pytest.mark.parametrize(
    ("work", "state", "code"),
    [("pass", "completed", 0), ("sys.exit(3)", "failed", 3)],
)
@pytest.mark.parametrize("way", ["os", "multiprocessing"])
def test_a_forked_child_that_has_something_to_say_finishes_too(
    program: type[Program], way: str, work: str, state: str, code: int
) -> None:
    ways = {
        "os": """
if os.fork() == 0:
    work()
    sys.exit()
say("exit", os.waitstatus_to_exitcode(os.wait()[1]))
""",
        "multiprocessing": """
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
say("exit", child.exitcode)
""",
    }
    ended = program(f"{START}\ndef work():\n    lifetime.stir()\n    {work}\n{ways[way]}", {}).end()
    assert ended.out.splitlines() == ["child", f"finish {state} 4.5", f"exit {code}", "finish completed 4.5"]


def test_a_child_can_be_ended_right_after_its_start_and_alone(program: type[Program]) -> None:
    # Until its first Python code runs, the child has our handler and our socket.
    fork = """
for _ in range(30):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    child.terminate()
    child.join()
say("done")
"""
    ended = program(START + fork, {}).end()
    assert [line for line in ended.out.splitlines() if line != "child"] == ["done", "finish completed 4.5"]
    assert ended.code == 0


def test_freeze_comes_after_its_time_and_again_when_stirred() -> None:
    frozen, patches = threading.Semaphore(0), Patches(Faults())
    lifetime = Lifetime(
        finish=lambda _state, _seconds: None,
        preempted=lambda _seconds: None,
        on_fork_child=lambda: None,
        freeze=frozen.release,
        freeze_after=0.05,
        patches=patches,
        faults=Faults(),
    )
    lifetime.start()
    try:
        assert frozen.acquire(timeout=5)
        assert not frozen.acquire(timeout=0.2)
        lifetime.stir()
        assert frozen.acquire(timeout=5)
    finally:
        patches.undo()
        lifetime.stop()


def test_freeze_comes_later_while_there_is_something_to_wait_for() -> None:
    events: queue.Queue[str] = queue.Queue()
    left = iter((True, True, False))

    def waits() -> bool:
        more = next(left)
        events.put("waits" if more else "enough")
        return more

    patches = Patches(Faults())
    lifetime = Lifetime(
        finish=lambda _state, _seconds: None,
        preempted=lambda _seconds: None,
        on_fork_child=lambda: None,
        freeze=lambda: events.put("freeze"),
        freeze_after=0.02,
        patches=patches,
        faults=Faults(),
        waits=waits,
    )
    lifetime.start()
    try:
        assert [events.get(timeout=5) for _ in range(4)] == ["waits", "waits", "enough", "freeze"]
    finally:
        patches.undo()
        lifetime.stop()


def test_stop_puts_everything_back() -> None:
    before = (sys.exit, signal.getsignal(signal.SIGTERM), threading.active_count())
    patches = Patches(Faults())
    lifetime = Lifetime(
        finish=lambda _state, _seconds: None,
        preempted=lambda _seconds: None,
        on_fork_child=lambda: None,
        freeze=lambda: None,
        freeze_after=60,
        patches=patches,
        faults=Faults(),
    )
    lifetime.start()
    assert sys.exit is not before[0]
    patches.undo()
    lifetime.stop()
    lifetime.stop()
    assert (sys.exit, signal.getsignal(signal.SIGTERM), threading.active_count()) == before
    assert signal.set_wakeup_fd(-1) == -1
