"""What workers recorded arrives when a job ends well; an end that cannot wait is not kept waiting."""

import time

from rlotel.receiver import Receiver, Reply
from tests.frameworks.ray.conftest import Drive, phases

ACTORS = """
@ray.remote(num_cpus=0)
class Inner:
    def work(self):
        with rlotel.phase("inner"):
            return os.getpid()

@ray.remote(num_cpus=0)
class Outer:
    def __init__(self):
        self.inner = Inner.remote()
    def work(self, name="outer"):
        with rlotel.phase("before"):
            pass
        with rlotel.phase(name):
            return os.getpid(), ray.get(self.inner.work.remote())
    def hang(self, path):
        open(path, "w").close()
        time.sleep(60)
"""
SLOW = "60"
"""No metric leaves a worker by itself in the time of a test."""


def durations(receiver: Receiver) -> set[tuple[object, object]]:
    return {
        (point.resource["process.pid"], point.attributes["rl.phase.name"])
        for point in receiver.capture.points("rl.worker.duration")
    }


def test_a_driver_that_ends_takes_its_actors_and_theirs_along(drive: Drive, receiver: Receiver) -> None:
    code = "rlotel.instrument()\nray.init()\n" + ACTORS
    done = drive(
        code + "outer = Outer.remote()\nwith rlotel.loop():\n    say(ray.get(outer.work.remote()))",
        RLOTEL_EXPORT_INTERVAL=SLOW,
    )
    outer, inner = done.result
    # All has arrived as the driver is gone.
    assert phases(receiver).keys() == {"loop", "before", "outer", "inner"}
    assert durations(receiver) == {(outer, "before"), (outer, "outer"), (inner, "inner")}
    assert done.complaints == []


def test_ray_shutdown_takes_them_along_too(drive: Drive, receiver: Receiver) -> None:
    code = "ray.init()\nrlotel.instrument()\n" + ACTORS + "outer = Outer.remote()\n"
    code += "with rlotel.loop():\n    found = ray.get(outer.work.remote())\nray.shutdown()\nsay(found)"
    done = drive(code, RLOTEL_EXPORT_INTERVAL=SLOW)
    outer, inner = done.result
    assert durations(receiver) == {(outer, "before"), (outer, "outer"), (inner, "inner")}


def test_a_killed_actor_exports_first(drive: Drive, receiver: Receiver) -> None:
    code = "rlotel.instrument()\nray.init()\n" + ACTORS
    code += """
outer = Outer.remote()
with rlotel.loop():
    found = ray.get(outer.work.remote())
ray.kill(outer)
try:
    ray.get(outer.work.remote())
except ray.exceptions.RayActorError:
    ray.kill(outer)  # a second time, as Ray allows
    say(found)
"""
    done = drive(code, RLOTEL_EXPORT_INTERVAL=SLOW)
    outer, _ = done.result
    assert phases(receiver).keys() >= {"loop", "before", "outer"}
    assert durations(receiver) >= {(outer, "before"), (outer, "outer")}
    assert done.complaints == []


def test_a_busy_actor_is_killed_all_the_same(drive: Drive, receiver: Receiver) -> None:
    code = "rlotel.instrument()\nray.init()\n" + ACTORS
    code += """
outer = Outer.remote()
with rlotel.loop():
    ray.get(outer.work.remote())
    hangs = os.path.abspath("hangs")
    outer.hang.remote(hangs)
    while not os.path.exists(hangs):
        time.sleep(0.01)
started = time.monotonic()
ray.kill(outer)
say(time.monotonic() - started)
"""
    done = drive(code, RLOTEL_EXPORT_INTERVAL=SLOW)
    assert done.result < 5
    # What it sent before it hung is there.
    assert phases(receiver).keys() >= {"loop", "before", "outer"}


def test_an_actor_that_ends_by_itself_exports(drive: Drive, receiver: Receiver) -> None:
    code = "rlotel.instrument()\nray.init()\n" + ACTORS
    code += """
outer = Outer.remote()
with rlotel.loop():
    found = ray.get(outer.work.remote())
outer.__ray_terminate__.remote()
try:
    while True:
        ray.get(outer.__ray_ready__.remote())
except ray.exceptions.RayActorError:
    say(found)
"""
    done = drive(code, RLOTEL_EXPORT_INTERVAL=SLOW)
    outer, _ = done.result
    assert receiver.wait_for(lambda _: durations(receiver) >= {(outer, "before"), (outer, "outer")}, 10)


def test_an_end_without_an_answer_from_the_collector_is_bounded(drive: Drive, receiver: Receiver) -> None:
    receiver.reply = Reply(silent=True)
    code = "rlotel.instrument()\nray.init()\n" + ACTORS
    code += """
outer = Outer.remote()
with rlotel.loop():
    ray.get(outer.work.remote())
say(time.time())
"""
    done = drive(code, RLOTEL_EXPORT_INTERVAL=SLOW)
    # 2 s for the actors, 5 s for the driver itself; Ray's own end takes 1 or 2.
    assert time.time() - done.result < 12
