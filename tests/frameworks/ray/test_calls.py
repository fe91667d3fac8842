"""Every kind of task and actor method works as it did, and carries its loop where Ray has a place for it."""

from rlotel.receiver import Receiver
from tests.frameworks.ray.conftest import Drive, phases


def test_every_kind_of_call(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        """
        import asyncio, threading
        rlotel.instrument()
        ray.init()

        def traced(name):
            with rlotel.phase(name):
                return name

        @ray.remote(num_cpus=0)
        def task(x, *rest, key=0, **keys):
            traced("task")
            return x, rest, key, keys

        @ray.remote(num_cpus=0, num_returns=2)
        def two():
            traced("two")
            return 1, 2

        @ray.remote(num_cpus=0)
        def items(n):
            for i in range(n):
                traced("task_items")
                yield i

        class Base:
            def inherited(self):
                return traced("inherited")

        @ray.remote(num_cpus=0)
        class Sync(Base):
            def __init__(self, x):
                traced("init")
                self.x = x
            def method(self, y, *rest, key=0, **keys):
                traced("method")
                return self.x, y, rest, key, keys
            @ray.method(num_returns=2)
            def pair(self):
                traced("pair")
                return 1, 2
            def items(self, n):
                for i in range(n):
                    yield i
            def fail(self):
                raise ZeroDivisionError("theirs")
            @staticmethod
            def static():
                return "static"
            @classmethod
            def of_class(cls):
                return cls.__name__

        @ray.remote(num_cpus=0, max_concurrency=3)
        class Threaded:
            def __init__(self):
                self.all = threading.Barrier(3)
            def meet(self, name):
                self.all.wait(20)
                with rlotel.phase(name):
                    self.all.wait(20)
                return threading.get_ident()

        @ray.remote(num_cpus=0)
        class Async:
            def __init__(self):
                self.here = 0
            async def meet(self, name):
                self.here += 1
                while self.here < 3:
                    await asyncio.sleep(0.01)
                with rlotel.phase(name):
                    await asyncio.sleep(0.05)
                return name
            async def items(self, n):
                for i in range(n):
                    yield i
            def plain(self):
                return traced("plain_in_async")

        streaming = dict(num_returns="streaming")
        results = {}
        with rlotel.loop(iteration=0):
            sync, threads, asynchronous = Sync.remote(1), Threaded.remote(), Async.remote()
            results["task"] = ray.get(task.remote(1, 2, key=3, other=4))
            results["two"] = ray.get(two.remote())
            results["task items"] = [ray.get(item) for item in items.options(**streaming).remote(2)]
            results["method"] = ray.get(sync.method.remote(2, 3, key=4, other=5))
            results["pair"] = ray.get(sync.pair.remote())
            results["inherited"] = ray.get(sync.inherited.remote())
            results["items"] = [ray.get(item) for item in sync.items.options(**streaming).remote(2)]
            results["static"] = ray.get([sync.static.remote(), sync.of_class.remote()])
            results["call"] = ray.get(sync.__ray_call__.remote(lambda self, y: self.x + y, 1))
            results["async items"] = [ray.get(i) for i in asynchronous.items.options(**streaming).remote(2)]
            results["plain"] = ray.get(asynchronous.plain.remote())
            try:
                ray.get(sync.fail.remote())
            except ZeroDivisionError as error:
                results["error"] = str(error.cause)
        meetings = []
        for i in range(3):
            with rlotel.loop(iteration=i + 1), rlotel.sample():
                meetings += [threads.meet.remote(f"thread{i}"), asynchronous.meet.remote(f"async{i}")]
        idents = ray.get(meetings)
        results["threads"] = len(set(idents[::2]))
        say(results)
        """
    )
    assert done.result == {
        "task": [1, [2], 3, {"other": 4}],
        "two": [1, 2],
        "task items": [0, 1],
        "method": [1, 2, [3], 4, {"other": 5}],
        "pair": [1, 2],
        "inherited": "inherited",
        "items": [0, 1],
        "static": ["static", "Sync"],
        "call": 2,
        "async items": [0, 1],
        "plain": "plain_in_async",
        "error": "theirs",
        "threads": 3,
    }
    assert done.complaints == []
    spans = phases(receiver)
    iteration = {span.trace_id: span.attributes["rl.loop.iteration"] for span in receiver.capture.spans("rl.loop")}
    joined = {name: iteration.get(span.trace_id) for name, span in spans.items()}
    carried = ("task", "two", "task_items", "init", "method", "pair", "inherited", "plain_in_async")
    assert {name: joined[name] for name in carried} == dict.fromkeys(carried, 0)
    # Calls that run at the same time in one actor keep their own.
    met = {f"{kind}{i}": i + 1 for kind in ("thread", "async") for i in range(3)}
    assert {name: joined[name] for name in met} == met


def test_rays_own_tracing_goes_on_as_it_was(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        """
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from ray.util.tracing import tracing_helper

        trace.set_tracer_provider(TracerProvider())
        rlotel.instrument()
        ray.init()
        tracing_helper._enable_tracing()

        @ray.remote(num_cpus=0)
        class Actor:
            def work(self):
                with rlotel.phase("work"):
                    return 1

        with rlotel.loop():
            actor = Actor.remote()
            say(ray.get(actor.work.remote()))
        """
    )
    assert done.result == 1
    assert done.complaints == []
    assert phases(receiver).keys() == {"loop", "work"}
    # Ray's span of the call lies between ours, and goes where the program sends it.
    assert phases(receiver)["work"].parent_id
