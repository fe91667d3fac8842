"""All ways in: whatever the program does, its workers are reached, and never harmed."""

import json
import subprocess
import sys
import time
from pathlib import Path

from rlotel import autostart
from rlotel.receiver import Receiver
from tests.frameworks.ray.conftest import Cluster, Drive, heard, phases, plain, reporters

WORKERS = """
@ray.remote(num_cpus=0)
def task():
    with rlotel.phase("task"):
        return {name: os.environ.get(name) for name in ("MINE", "HOOKED", "RLOTEL_RUN_ID", "OTEL_SERVICE_NAME")}

@ray.remote(num_cpus=0)
class Nested:
    def work(self):
        with rlotel.phase("nested"):
            return ray.get(task.remote())

@ray.remote(num_cpus=0)
class Actor:
    def work(self):
        nested = Nested.remote()
        with rlotel.phase("actor"):
            return ray.get(nested.work.remote())

def iterate():
    actor = Actor.remote()
    with rlotel.loop():
        return ray.get(actor.work.remote())
"""


def one_trace(receiver: Receiver) -> None:
    spans = heard(receiver, "loop", "actor", "nested", "task")
    assert len({span.trace_id for span in spans.values()}) == 1
    assert len({span.resource["process.pid"] for span in spans.values()}) == 4
    assert len({span.resource["rl.run.id"] for span in spans.values()}) == 1


def test_without_ray_init(drive: Drive, receiver: Receiver) -> None:
    done = drive("rlotel.instrument()\n" + WORKERS + "say(iterate())")
    one_trace(receiver)
    assert done.complaints == []


def test_after_ray_init_with_a_runtime_env_of_ones_own(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        "ray.init(runtime_env={'env_vars': {'MINE': 'job', 'RLOTEL_RUN_ID': 'theirs'}})\nrlotel.instrument()\n"
        + WORKERS
        + "task = task.options(runtime_env={'env_vars': {'MINE': 'task'}})\nray.get(task.remote())\nsay(iterate())"
    )
    assert done.result["MINE"] in ("job", "task")
    assert done.result["RLOTEL_RUN_ID"] == "theirs"
    heard(receiver, "loop", "actor", "nested", "task")
    assert len({span.trace_id for name, span in phases(receiver).items() if name != "task"}) == 1
    assert done.complaints == []


def test_a_runtime_env_of_ones_own_is_merged_and_wins(drive: Drive, receiver: Receiver) -> None:
    hook = "def hook():\n    import os\n    os.environ['HOOKED'] = 'yes'\n"
    done = drive(
        hook
        + "rlotel.instrument(run_id='ours')\n"
        + "mine = {'MINE': '1', 'OTEL_SERVICE_NAME': 'theirs'}\n"
        + "ray.init(runtime_env={'env_vars': mine, 'worker_process_setup_hook': hook})\n"
        + "assert list(mine) == ['MINE', 'OTEL_SERVICE_NAME']\n"
        + WORKERS
        + "say(iterate())",
        OTEL_SERVICE_NAME="ours",
    )
    assert done.result == {"MINE": "1", "HOOKED": "yes", "RLOTEL_RUN_ID": "ours", "OTEL_SERVICE_NAME": "theirs"}
    one_trace(receiver)
    assert phases(receiver)["loop"].resource["service.name"] == "ours"
    assert phases(receiver)["task"].resource["service.name"] == "theirs"


def test_workers_can_be_switched_off(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        "rlotel.instrument()\nray.init(runtime_env={'env_vars': {'RLOTEL_ENABLED': 'false'}})\n"
        + WORKERS
        + "iterate()\nsay(os.getpid())"
    )
    assert heard(receiver, "loop").keys() == {"loop"}
    assert reporters(receiver.capture.points()) == {done.result}


def test_an_actor_that_instruments_reaches_those_it_starts(drive: Drive, receiver: Receiver) -> None:
    done = drive(
        "ray.init()\n"
        + WORKERS
        + """
@ray.remote(num_cpus=0)
class Trainer:
    def fit(self, endpoint):
        session = rlotel.instrument(endpoint=endpoint)
        iterate()
        session.close()
        return os.getpid()
trainer = Trainer.remote()
say(ray.get(trainer.fit.remote(os.environ["RLOTEL_ENDPOINT"])))
"""
    )
    one_trace(receiver)
    assert reporters(receiver.capture.points("rl.run.status")) == {done.result}


def test_workers_without_rlotel_work_as_before(drive: Drive, receiver: Receiver, bare_python: str) -> None:
    done = drive(
        f"""
        rlotel.instrument()
        ray.init(runtime_env={{"py_executable": {bare_python!r}}})

        @ray.remote(num_cpus=0)
        def task(x, *rest, key=0, **keys):
            return [x, rest, key, keys]

        @ray.remote(num_cpus=0)
        class Actor:
            def sync(self, x, key=0):
                import importlib.util
                return [x, key, importlib.util.find_spec("rlotel.session") is None]
            async def asynchronous(self, x):
                return x
            async def items(self, n):
                for i in range(n):
                    yield i

        actor = Actor.remote()
        with rlotel.loop():
            sync = ray.get(actor.sync.remote(1, key=2))
            say([
                sync,
                ray.get(actor.asynchronous.remote(3)),
                [ray.get(item) for item in actor.items.options(num_returns="streaming").remote(2)],
                ray.get(task.remote(4, 5, key=6, other=7)),
            ])
        ray.kill(actor)
        """
    )
    assert done.result == [[1, 2, True], 3, [0, 1], [4, [5], 6, {"other": 7}]]
    assert heard(receiver, "loop").keys() == {"loop"}
    assert done.complaints == []


def test_workers_without_rlotel_are_reached_by_pythonpath(
    drive: Drive, receiver: Receiver, bare_python: str
) -> None:
    done = drive(
        f"ray.init(runtime_env={{'py_executable': {bare_python!r}}})\n" + WORKERS + "say(iterate())",
        PYTHONPATH=autostart.FOLDER,
        RLOTEL_ENABLED="true",
    )
    one_trace(receiver)
    assert done.complaints == []


def submit(cluster: Cluster, receiver: Receiver, folder: Path, code: str, env_vars: dict[str, str]) -> None:
    (folder / "job.py").write_text("import json, os, sys, time\nimport ray, rlotel\n" + code)
    command = [sys.executable, "-m", "ray.scripts.scripts", "job", "submit", "--address", cluster.dashboard]
    runtime_env = {"env_vars": {"RLOTEL_ENDPOINT": receiver.http_endpoint, **env_vars}}
    entry = [sys.executable, str(folder / "job.py")]
    deadline = time.monotonic() + 60
    while True:
        done = subprocess.run(
            [
                *command,
                "--runtime-env-json",
                json.dumps(runtime_env),
                "--submission-id",
                folder.name,
                "--",
                *entry,
            ],
            env=plain({}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if "No available agent" not in done.stderr or time.monotonic() > deadline:
            break  # a cluster that has just started takes no jobs yet
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_submitted_job_without_a_line_of_code(cluster: Cluster, receiver: Receiver, tmp_path: Path) -> None:
    submit(cluster, receiver, tmp_path, "ray.init()\n" + WORKERS + "iterate()", {"RLOTEL_ENABLED": "true"})
    one_trace(receiver)
    loop = phases(receiver)["loop"].resource
    assert loop["rl.run.id"] == loop["ray.job.submission_id"] == tmp_path.name
    # Neither Ray's supervisor of the job nor anything else of Ray's own takes part.
    assert reporters(receiver.capture.points("rl.run.status")) == {loop["process.pid"]}


def test_a_submitted_job_that_sets_the_same_variables(
    cluster: Cluster, receiver: Receiver, tmp_path: Path
) -> None:
    code = "rlotel.instrument()\nray.init(runtime_env={'env_vars': {'MINE': '1'}})\n" + WORKERS + "iterate()"
    submit(cluster, receiver, tmp_path, code, {"RLOTEL_RUN_ID": "theirs", "RLOTEL_ALGORITHM": "PPO"})
    one_trace(receiver)
    resources = [span.resource for span in phases(receiver).values()]
    assert {(found["rl.run.id"], found["rl.algorithm"]) for found in resources} == {("theirs", "PPO")}
