"""The Resource: what each kind of environment tells, who wins, and what Google's metadata server adds."""

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.sdk.resources import Resource

from rlotel import resource
from rlotel.config import Config, resolve
from rlotel.metadata_server import gcp_facts, on_google_cloud
from rlotel.resource import Facts, process_facts

NOWHERE = Path("/nonexistent")
PROCESS = {"service.instance.id", "host.name", "process.pid"}


def facts(environ: Mapping[str, str], config: Config | None = None) -> Mapping[str, object]:
    """What an environment tells beyond the process itself."""
    found = process_facts(config or Config(), environ, namespace_file=NOWHERE)
    return {name: value for name, value in found.items() if name not in PROCESS}


def built(environ: Mapping[str, str], identity: Mapping[str, str] | None = None) -> Mapping[str, object]:
    config = resolve({}, environ)
    found = process_facts(config, environ, namespace_file=NOWHERE)
    return resource.build(config, identity or {}, found, environ).attributes


def test_a_bare_process_tells_its_host_its_pid_and_an_id_and_invents_nothing() -> None:
    found = process_facts(Config(), {}, namespace_file=NOWHERE)
    assert found.keys() == PROCESS
    assert found["host.name"] == socket.gethostname()
    assert found["process.pid"] == os.getpid()


def test_the_downward_api_is_read_in_kubernetes_under_the_names_manifests_use() -> None:
    assert facts(
        {
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "POD_NAME": "trainer-0",
            "POD_UID": "abc",
            "POD_NAMESPACE": "rl",
            "NODE_NAME": "gke-pool-1",
            "CONTAINER_NAME": "main",
            "K8S_CLUSTER_NAME": "east",
            "JOBSET_NAME": "grpo",
            "JOB_COMPLETION_INDEX": "3",
        }
    ) == {
        "k8s.pod.name": "trainer-0",
        "k8s.pod.uid": "abc",
        "k8s.namespace.name": "rl",
        "k8s.node.name": "gke-pool-1",
        "k8s.container.name": "main",
        "k8s.cluster.name": "east",
        "k8s.jobset.name": "grpo",
        "k8s.job.completion_index": 3,
    }


def test_the_same_names_outside_kubernetes_mean_something_else_and_are_left_out() -> None:
    assert facts({"NODE_NAME": "built-in", "NAMESPACE": "x", "POD_NAME": "y", "CLUSTER_NAME": "z"}) == {}


def test_an_unmistakable_name_is_believed_anywhere_and_before_a_general_one() -> None:
    assert facts({"K8S_NODE_NAME": "n1"}) == {"k8s.node.name": "n1"}
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert facts({**inside, "K8S_NODE_NAME": "n1", "NODE_NAME": "n2"}) == {"k8s.node.name": "n1"}


def test_a_host_name_is_not_taken_for_a_pod_name() -> None:
    assert facts({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "gke-pool-1"}) == {}


def test_the_namespace_is_read_from_the_service_account_where_no_variable_has_it(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    file.write_text("team-a\n")
    assert process_facts(Config(), {}, namespace_file=file)["k8s.namespace.name"] == "team-a"
    given = process_facts(Config(), {"K8S_NAMESPACE_NAME": "team-b"}, namespace_file=file)
    assert given["k8s.namespace.name"] == "team-b"


def test_a_kuberay_pod_tells_its_ray_job_and_its_pod() -> None:
    assert facts(
        {
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "RAY_CLUSTER_NAME": "rc",
            "RAY_CLUSTER_NAMESPACE": "rl",
            "RAY_CLOUD_INSTANCE_ID": "rc-worker-7",
            "RAY_JOB_ID": "02000000",
            "RAY_NODE_ID": "abcd",
            "RAY_JOB_CONFIG_JSON_ENV_VAR": '{"metadata": {"job_submission_id": "raysubmit_1"}}',
        }
    ) == {
        "k8s.pod.name": "rc-worker-7",
        "k8s.namespace.name": "rl",
        "ray.cluster.name": "rc",
        "ray.job.id": "02000000",
        "ray.node.id": "abcd",
        "ray.job.submission_id": "raysubmit_1",
    }


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", '{"metadata": null}', '{"metadata": {}}', "3"])
def test_a_job_configuration_of_another_shape_is_no_error(text: str) -> None:
    environ = {"RAY_JOB_CONFIG_JSON_ENV_VAR": text}
    assert facts(environ) == {}
    assert facts({**environ, "RAY_JOB_SUBMISSION_ID": "s"}) == {"ray.job.submission_id": "s"}


def test_a_slurm_task_under_torchrun_tells_its_job_and_ranks() -> None:
    assert facts(
        {
            "SLURM_JOB_ID": "991",
            "SLURMD_NODENAME": "node7",
            "SLURM_PROCID": "4",
            "RANK": "12",
            "WORLD_SIZE": "64",
            "LOCAL_RANK": "4",
        }
    ) == {
        "slurm.job.id": "991",
        "slurm.node.name": "node7",
        "slurm.procid": 4,
        "rl.worker.rank": 12,
        "torch.distributed.world_size": 64,
        "torch.distributed.local_rank": 4,
    }


@pytest.mark.parametrize("text", ["", "-1", "one", "1.0", "$(RANK)", "9" * 30])
def test_a_rank_that_is_no_number_is_unknown(text: str) -> None:
    assert facts({"RANK": text}) == {}


def test_every_process_has_an_id_of_its_own_also_where_the_environment_gives_all_the_same() -> None:
    environ = {"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=trainer"}
    first, second = (str(built(environ)["service.instance.id"]) for _ in range(2))
    assert first != second
    assert first.startswith("trainer-")
    assert second.startswith("trainer-")


FORK = """
import os
from rlotel.config import Config
from rlotel.resource import Facts

found = Facts(Config(), {})
for _ in range(2):
    print(found.get()["service.instance.id"], flush=True)
if os.fork() == 0:
    print(found.get()["service.instance.id"], flush=True)
else:
    os.wait()
"""


def test_the_id_of_a_process_stays_and_a_forked_child_gets_another() -> None:
    result = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60)
    first, again, childs = result.stdout.split()
    assert first == again
    assert len(childs) == len(first) == 36
    assert childs != first


def test_an_id_is_not_drawn_from_the_generator_that_belongs_to_the_training() -> None:
    random.seed(42)
    before = random.getstate()
    first = process_facts(Config(), {})["service.instance.id"]
    assert random.getstate() == before
    random.seed(42)
    assert process_facts(Config(), {})["service.instance.id"] != first


def test_the_sdk_is_named_and_a_service_name_is_there_if_nobody_gave_one() -> None:
    attributes = built({})
    assert attributes["service.name"] == "rl-training"
    assert attributes["telemetry.sdk.name"] == "opentelemetry"
    assert attributes["telemetry.sdk.language"] == "python"
    assert attributes["telemetry.sdk.version"] == Resource({}).create().attributes["telemetry.sdk.version"]


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"OTEL_SERVICE_NAME": "a"}, "a"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=b"}, "b"),
        ({"OTEL_SERVICE_NAME": "a", "OTEL_RESOURCE_ATTRIBUTES": "service.name=b"}, "a"),
    ],
)
def test_the_users_service_name_is_kept(environ: dict[str, str], name: str) -> None:
    assert built(environ)["service.name"] == name


def test_the_users_attributes_win_over_what_was_found_and_the_identity_over_both() -> None:
    environ = {
        "RANK": "1",
        "SLURM_JOB_ID": "7",
        "OTEL_RESOURCE_ATTRIBUTES": "slurm.job.id=eight, team=a%20b ,rl.run.id=mine,host.name=box,broken",
    }
    attributes = built(environ, {"rl.run.id": "r1", "rl.system": "custom"})
    assert {name: attributes[name] for name in ("slurm.job.id", "team", "host.name", "rl.worker.rank")} == {
        "slurm.job.id": "eight",
        "team": "a b",
        "host.name": "box",
        "rl.worker.rank": 1,
    }
    assert attributes["rl.run.id"] == "r1"
    assert attributes["rl.system"] == "custom"


def test_bytes_that_are_no_text_cost_a_character_and_not_the_export() -> None:
    environ = {"OTEL_SERVICE_NAME": os.fsdecode(b"a\xff"), "OTEL_RESOURCE_ATTRIBUTES": os.fsdecode(b"k\xff=v\xff")}
    attributes = built({**environ, "SLURM_JOB_NAME": os.fsdecode(b"\xff")})
    assert (attributes["service.name"], attributes["k?"]) == ("a?", "v?")
    for name, value in attributes.items():
        assert f"{name}{value}".encode()


def test_the_location_that_is_set_wins_over_every_other() -> None:
    environ = {"RLOTEL_LOCATION": "europe-west4", "OTEL_RESOURCE_ATTRIBUTES": "location=us-east1"}
    assert built(environ)["location"] == "europe-west4"
    del environ["RLOTEL_LOCATION"]
    assert built(environ)["location"] == "us-east1"


# Google Cloud.


@dataclass
class MetadataServer:
    """Answers as Google's does, on a real socket."""

    values: dict[str, str]
    flavor: str = "Google"
    asked: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def metadata() -> Iterator[MetadataServer]:
    answers = MetadataServer(
        {
            "project/project-id": "my-project",
            "instance/zone": "projects/1234/zones/us-central1-a",
            "instance/attributes/cluster-name": "rl",
            "instance/attributes/cluster-location": "us-central1",
        }
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            what = self.path.removeprefix("/computeMetadata/v1/")
            answers.asked.append(what)
            asked_well = self.headers["Metadata-Flavor"] == "Google"
            value = answers.values.get(what)
            self.send_response(403 if not asked_well else 404 if value is None else 200)
            self.send_header("Metadata-Flavor", answers.flavor)
            self.end_headers()
            self.wfile.write((value or "not found").encode())

        def log_message(self, *args: object) -> None:
            """Keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    answers.address = f"127.0.0.1:{server.server_port}"
    yield answers
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_gke_node_tells_project_cluster_and_the_clusters_location(metadata: MetadataServer) -> None:
    assert gcp_facts({"GCE_METADATA_HOST": metadata.address}, dmi_product=NOWHERE) == {
        "cloud.provider": "gcp",
        "cloud.platform": "gcp_kubernetes_engine",
        "cloud.account.id": "my-project",
        "cloud.region": "us-central1",
        "cloud.availability_zone": "us-central1-a",
        "gcp.project_id": "my-project",
        "k8s.cluster.name": "rl",
        "location": "us-central1",
    }


def test_a_virtual_machine_has_its_zone_as_location_and_no_cluster(metadata: MetadataServer) -> None:
    del (
        metadata.values["instance/attributes/cluster-name"],
        metadata.values["instance/attributes/cluster-location"],
    )
    assert gcp_facts({"GCE_METADATA_HOST": metadata.address}, dmi_product=NOWHERE) == {
        "cloud.provider": "gcp",
        "cloud.platform": "gcp_compute_engine",
        "cloud.account.id": "my-project",
        "cloud.region": "us-central1",
        "cloud.availability_zone": "us-central1-a",
        "gcp.project_id": "my-project",
        "location": "us-central1-a",
    }


def test_a_proxy_is_not_asked_in_the_servers_place(
    metadata: MetadataServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    found = gcp_facts({"GCE_METADATA_HOST": metadata.address}, dmi_product=NOWHERE)
    assert found["gcp.project_id"] == "my-project"


def test_any_other_web_server_is_not_believed(metadata: MetadataServer) -> None:
    metadata.flavor = "portal"
    assert gcp_facts({"GCE_METADATA_HOST": metadata.address}, dmi_product=NOWHERE) == {}


@pytest.mark.parametrize("address", ["127.0.0.1:1", "not a host", "[", "\n"])
def test_a_metadata_server_that_is_not_there_is_no_error(address: str) -> None:
    assert gcp_facts({"GCE_METADATA_HOST": address}, dmi_product=NOWHERE) == {}


def test_nobody_is_asked_where_the_firmware_is_not_googles(metadata: MetadataServer, tmp_path: Path) -> None:
    product = tmp_path / "product_name"
    product.write_text("Standard PC (Q35 + ICH9, 2009)\n")
    assert not on_google_cloud({}, dmi_product=product)
    assert gcp_facts({}, dmi_product=product) == {}
    assert metadata.asked == []
    product.write_text("Google Compute Engine\n")
    assert on_google_cloud({}, dmi_product=product)


def test_what_the_metadata_server_says_joins_the_resource_and_the_location_that_is_set_still_wins(
    metadata: MetadataServer,
) -> None:
    environ = {"GCE_METADATA_HOST": metadata.address, "RLOTEL_LOCATION": "europe-west4"}
    config = resolve({}, environ)
    found = Facts(config, environ)
    found.start()
    attributes = resource.build(config, {"rl.run.id": "r1"}, found.get(), environ).attributes
    assert attributes["k8s.cluster.name"] == "rl"
    assert attributes["cloud.region"] == "us-central1"
    assert attributes["location"] == "europe-west4"


def test_detectors_that_the_user_asks_for_add_what_they_know_and_change_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(resource.DETECTORS, "process")
    found = Facts(Config(), os.environ)
    found.start()
    attributes = resource.build(Config(), {}, found.get(), os.environ).attributes
    assert attributes["process.runtime.name"] == sys.implementation.name
    assert attributes["service.name"] == "rl-training"
    assert attributes["service.instance.id"] == found.get()["service.instance.id"]


def test_no_thread_is_started_away_from_google_cloud() -> None:
    environ = {"GCE_METADATA_HOST": ""}
    if on_google_cloud(environ):
        pytest.skip("this machine is Google's")
    before = set(threading.enumerate())
    Facts(Config(), environ).start()
    assert set(threading.enumerate()) == before
