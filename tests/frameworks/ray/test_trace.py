"""One iteration is one trace, however many processes of Ray work for it."""

from rlotel.receiver import Receiver
from tests.frameworks.ray.conftest import Drive, heard, phases, reporters


def test_driver_actor_nested_actor_and_task_are_one_trace_on_two_nodes(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        """
        rlotel.instrument(run_id="r1", algorithm="GRPO", model="tiny")
        ray.init()

        @ray.remote(num_cpus=0, resources={"near": 1})
        def score(x):
            with rlotel.reward():
                return x + 1

        @ray.remote(num_cpus=0, resources={"far": 1})
        class Engine:
            async def generate(self, x):
                with rlotel.phase("generate"):
                    return await score.remote(x)

        @ray.remote(num_cpus=0, resources={"near": 1})
        class Rollouts:
            def __init__(self):
                self.engine = Engine.remote()
            def make(self, x):
                with rlotel.phase("make"):
                    return ray.get(self.engine.generate.remote(x)), os.getpid()

        rollouts = Rollouts.options(name="rollouts").remote()
        ray.get(rollouts.__ray_ready__.remote())
        for i in range(2):
            with rlotel.loop(iteration=i):
                with rlotel.sample():
                    result = ray.get(rollouts.make.remote(1))
        say([*result, ray.get_runtime_context().get_job_id()])
        """
    )
    result, pid, job = done.result
    assert result == 2
    assert done.complaints == []
    heard(receiver, "loop", "sample", "make", "generate", "reward")
    receiver.wait_for(lambda capture: len(capture.spans("rl.reward")) == 2, 10)
    trees = []
    for roots in receiver.capture.traces().values():
        (node,) = roots
        path = []
        while True:
            path.append(node.span.attributes.get("rl.phase.name") or node.span.name)
            if not node.children:
                break
            (node,) = node.children
        trees.append(path)
    assert trees == [["rl.loop", "rl.sample", "make", "generate", "rl.reward"]] * 2
    spans = phases(receiver)
    assert len({span.resource["process.pid"] for span in spans.values()}) == 4
    assert len({span.resource["ray.node.id"] for span in spans.values()}) == 2
    names = ("rl.run.id", "rl.algorithm", "rl.model.name", "service.name")
    assert {tuple(span.resource[name] for name in names) for span in spans.values()} == {
        ("r1", "GRPO", "tiny", "rl-training")
    }
    facts = spans["make"].resource
    assert (facts["ray.job.id"], facts["ray.actor.name"], facts["ray.actor.class"], facts["process.pid"]) == (
        job,
        "rollouts",
        "Rollouts",
        pid,
    )
    assert facts["ray.worker.process_type"] == "worker"
    assert spans["loop"].resource["ray.worker.process_type"] == "driver"


def test_what_workers_do_is_reported_once_under_a_name_of_its_own(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        """
        rlotel.instrument()
        ray.init()

        @ray.remote(num_cpus=0)
        class Trainer:
            def train(self, fail):
                with rlotel.train(role="actor") as train:
                    train.add(steps=2)
                    if fail:
                        raise KeyError("a prompt")
                return os.getpid()

        trainer = Trainer.remote()
        with rlotel.loop(), rlotel.train(role="actor"):
            pid = ray.get(trainer.train.remote(False))
            try:
                ray.get(trainer.train.remote(True))
            except KeyError as error:
                assert isinstance(error, ray.exceptions.RayTaskError)
        say([os.getpid(), pid])
        """
    )
    driver, worker = done.result
    receiver.wait_for(lambda capture: len(capture.latest("rl.worker.duration")) == 2, 10)
    capture = receiver.capture
    assert reporters(capture.points("rl.train.duration")) == {driver}
    assert [point.count for point in capture.latest("rl.train.duration")] == [1]
    assert reporters(capture.points("rl.worker.duration")) == {worker}
    seen = {
        (
            point.attributes["rl.phase.name"],
            point.attributes["rl.role"],
            point.attributes.get("error.type"),
            point.count,
        )
        for point in capture.latest("rl.worker.duration")
    }
    assert seen == {("train", "actor", None, 1), ("train", "actor", "KeyError", 1)}
    # What belongs to the run or to its loop comes from the driver alone; what was counted, from who counted it.
    for name in ("rl.run.status", "rl.progress.age", "rl.loop.duration", "rl.phase.failures", "rl.phase.age"):
        assert reporters(capture.points(name)) <= {driver}, name
    assert [point.value for point in capture.latest("rl.train.steps") if point.value] == [4]


def test_a_loop_in_an_actor_is_reported_by_the_actor(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        """
        session = rlotel.instrument()
        session.recorder.loop_is_elsewhere()
        ray.init()

        @ray.remote(num_cpus=0)
        class Worker:
            def work(self):
                with rlotel.phase("work"):
                    return os.getpid()

        @ray.remote(num_cpus=0)
        class Trainer:
            def fit(self):
                worker = Worker.remote()
                with rlotel.loop(iteration=7):
                    with rlotel.sample():
                        return os.getpid(), ray.get(worker.work.remote())

        trainer = Trainer.remote()
        say([os.getpid(), *ray.get(trainer.fit.remote())])
        """
    )
    driver, trainer, worker = done.result
    spans = heard(receiver, "loop", "sample", "work")
    assert {name: span.resource["process.pid"] for name, span in spans.items()} == {
        "loop": trainer,
        "sample": trainer,
        "work": worker,
    }
    assert len({span.trace_id for span in spans.values()}) == 1
    capture = receiver.capture
    assert reporters(capture.points("rl.loop.duration")) == {trainer}
    assert reporters(capture.points("rl.progress.age")) == {trainer}
    assert reporters(capture.points("rl.run.status")) == {driver}
    assert [p.value for p in capture.latest("rl.run.status") if p.attributes["rl.run.state"] == "completed"] == [1]
