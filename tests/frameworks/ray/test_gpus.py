"""GPUs of a real Ray on a faked driver: every series is of the GPU it names, and says what that is used for."""

import json
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest

from rlotel.receiver import Receiver
from tests.collectors.conftest import Builds, builds
from tests.frameworks.ray.conftest import plain

__all__ = ["builds"]

DRIVER = """
import json, os, sys
import ray, rlotel

rlotel.instrument(gpus=4)
ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)

@ray.remote(num_gpus=1, num_cpus=1)
class Worker:
    def begin(self, role):
        import pynvml
        from rlotel import session

        session.recorder().process.use_gpus(role)
        ids = ray.get_runtime_context().get_accelerator_ids()["GPU"]
        pynvml.nvmlInit()
        of_ray = [pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(int(one))) for one in ids]
        return os.environ.get("CUDA_VISIBLE_DEVICES"), of_ray

workers = [Worker.remote() for _ in range(4)]
roles = ["trainer", "trainer", "rollout", "rollout"]
begun = ray.get([worker.begin.remote(role) for worker, role in zip(workers, roles)])
print("RESULT", json.dumps(begun), flush=True)
with rlotel.loop():
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "environ", [{}, {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}], ids=["set", "unset"]
)
def test_a_gpu_says_what_the_actor_that_ray_gave_it_to_does(
    builds: Builds, tmp_path: Path, environ: dict[str, str]
) -> None:
    control = tmp_path / "control"
    watts = "".join(f"gpu{n}.power_mw={n + 1}00000\n" for n in range(4))
    control.write_text(f"count=4\n{watts}")
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(DRIVER))
    with Receiver() as receiver:
        settings = {
            "LD_LIBRARY_PATH": str(builds.new),
            "FAKE_NVML_CONTROL": str(control),
            "RLOTEL_RUN_ID": uuid.uuid4().hex,
            "RLOTEL_ENDPOINT": receiver.http_endpoint,
            "RLOTEL_EXPORT_INTERVAL": "1",
        }
        with subprocess.Popen(
            [sys.executable, str(script)],
            env=plain({**settings, **environ}),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            said = next((line for line in process.stdout if line.startswith("RESULT ")), None)
            assert said is not None
            actors = json.loads(said.removeprefix("RESULT "))
            assert [variable is None for variable, _ in actors] == [bool(environ)] * 4
            roles = dict(
                zip((uuids[0] for _, uuids in actors), ["trainer", "trainer", "rollout", "rollout"], strict=True)
            )
            assert len(roles) == 4

            def told() -> dict[object, object]:
                points = receiver.capture.latest("hw.power")
                return {
                    p.attributes["hw.id"]: p.attributes["rl.role"] for p in points if "rl.role" in p.attributes
                }

            assert receiver.wait_for(lambda _: told() == roles, 60), told()
            process.stdin.close()
        points = receiver.capture.points("hw.power")
    assert len({point.resource["process.pid"] for point in points}) == 1
    assert {(point.attributes["hw.name"], point.value) for point in points} == {
        (f"GPU {n}", (n + 1) * 100) for n in range(4)
    }
