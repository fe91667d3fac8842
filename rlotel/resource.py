"""The OpenTelemetry Resource: what the environment tells about this process, its host, cluster, job and cloud.

Who wins, from weak to strong: what is found here, `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`, the setting
`location`, the identity of the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.version import __version__ as sdk_version
from opentelemetry.util.types import AttributeValue

from rlotel import gates
from rlotel.config import Config
from rlotel.errors import log
from rlotel.metadata_server import gcp_facts, on_google_cloud
from rlotel.semconv import attributes as attr

DETECTORS = "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS"

SERVICE_NAME = "rl-training"
"""The `service.name` where nobody gave one: the same for all processes and frameworks of a run, so that a trace
is not torn into several services."""

ANSWER_WAIT = 0.5
"""Seconds that `Facts.get` waits for what was asked for; it was mostly answered long before."""

RAY_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""In the driver of a submitted job: the job's configuration, as JSON."""

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

_INSTANCE = "service.instance.id"
_LOCATION = "location"
_SERVICE = "service.name"
_SDK: Mapping[str, AttributeValue] = {
    "telemetry.sdk.language": "python",
    "telemetry.sdk.name": "opentelemetry",
    "telemetry.sdk.version": sdk_version,
}

# Variables that mean what they say wherever they are set; of several the first that is set.
_EVERYWHERE: Mapping[str, tuple[str, ...]] = {
    "k8s.pod.name": ("K8S_POD_NAME",),
    "k8s.pod.uid": ("K8S_POD_UID",),
    "k8s.namespace.name": ("K8S_NAMESPACE_NAME", "K8S_NAMESPACE"),
    "k8s.node.name": ("K8S_NODE_NAME",),
    "k8s.container.name": ("K8S_CONTAINER_NAME",),
    "k8s.cluster.name": ("K8S_CLUSTER_NAME",),
    "k8s.jobset.name": ("JOBSET_NAME",),
    "ray.job.id": ("RAY_JOB_ID",),
    "ray.node.id": ("RAY_NODE_ID",),
    "ray.cluster.name": ("RAY_CLUSTER_NAME",),
    "slurm.job.id": ("SLURM_JOB_ID", "SLURM_JOBID"),
    "slurm.node.name": ("SLURMD_NODENAME",),
}

# The downward API has no fixed names; these are what manifests call them, but elsewhere (a Jenkins agent has a
# NODE_NAME) they mean something else. KubeRay sets the RAY_ ones. The host name is not taken for the pod's: it
# is the node's in a pod on the host's network, and lacks the random end in an indexed Job, the two shapes that
# GPU training has on Kubernetes.
_IN_KUBERNETES: Mapping[str, tuple[str, ...]] = {
    "k8s.pod.name": ("POD_NAME", "MY_POD_NAME", "RAY_CLOUD_INSTANCE_ID"),
    "k8s.pod.uid": ("POD_UID", "MY_POD_UID"),
    "k8s.namespace.name": ("POD_NAMESPACE", "NAMESPACE", "MY_POD_NAMESPACE", "RAY_CLUSTER_NAMESPACE"),
    "k8s.node.name": ("NODE_NAME", "MY_NODE_NAME"),
    "k8s.container.name": ("CONTAINER_NAME",),
    "k8s.cluster.name": ("CLUSTER_NAME",),
}

_NUMBERS: Mapping[str, str] = {
    attr.WORKER_RANK.name: "RANK",
    "torch.distributed.world_size": "WORLD_SIZE",
    "torch.distributed.local_rank": "LOCAL_RANK",
    "slurm.procid": "SLURM_PROCID",
    "k8s.job.completion_index": "JOB_COMPLETION_INDEX",
}


def process_facts(
    config: Config, environ: Mapping[str, str], *, namespace_file: Path = NAMESPACE_FILE
) -> dict[str, AttributeValue]:
    """What is known of this process without asking anyone. Asks no network; a fact that is not known is absent.

    `service.instance.id` is another one at every call, also where `OTEL_RESOURCE_ATTRIBUTES` has one: children
    and Ray workers inherit that variable, and two processes with one id write the same series. Such an id is
    kept as the beginning.

    Args:
        config: the settings.
        environ: the process's environment.
        namespace_file: where Kubernetes puts the namespace of a pod.
    """
    given = given_attributes(environ)
    own = str(uuid.uuid4())  # from os.urandom; Python's global generator belongs to the training
    facts: dict[str, AttributeValue] = {
        _INSTANCE: f"{given[_INSTANCE]}-{own[:8]}" if given.get(_INSTANCE) else own,
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
    }
    tables = [_EVERYWHERE]
    if environ.get("KUBERNETES_SERVICE_HOST"):
        tables.append(_IN_KUBERNETES)
    for table in tables:
        for name, variables in table.items():
            if value := next(filter(None, map(environ.get, variables)), None):
                facts.setdefault(name, value)
    if "k8s.namespace.name" not in facts and (namespace := _first_line(namespace_file)):
        facts["k8s.namespace.name"] = namespace
    if config.location:
        facts[_LOCATION] = config.location
    if submission := ray_submission_id(environ):
        facts["ray.job.submission_id"] = submission
    for name, variable in _NUMBERS.items():
        if (value := environ.get(variable, "")).isdecimal():
            with contextlib.suppress(gates.Refused):
                facts[name] = gates.integer(int(value))
    return facts


def ray_submission_id(environ: Mapping[str, str]) -> str | None:
    """The id of a job that was started by `ray job submit`, as Ray tells the driver."""
    try:
        metadata = json.loads(environ.get(RAY_JOB_CONFIG, "{}"))["metadata"]
        submission = metadata["job_submission_id"]
    except (ValueError, LookupError, TypeError):
        submission = environ.get("RAY_JOB_SUBMISSION_ID")
    return str(submission) if submission else None


def given_attributes(environ: Mapping[str, str]) -> dict[str, str]:
    """The attributes that the user gave by `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`."""
    given = {}
    for item in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, equals, value = item.partition("=")
        if equals and key.strip():
            given[key.strip()] = unquote(value.strip())
    if name := environ.get("OTEL_SERVICE_NAME"):
        given[_SERVICE] = name
    return given


def build(
    config: Config, identity: Mapping[str, str], facts: Mapping[str, AttributeValue], environ: Mapping[str, str]
) -> Resource:
    """The Resource of everything that this process sends.

    Args:
        config: the settings.
        identity: the attributes that name the run; they win over all.
        facts: from `process_facts` and `gcp_facts`.
        environ: the environment that the user's own attributes are read from.
    """
    given = given_attributes(environ)
    # Of these two the facts say more: the id was made unique, the location is a setting.
    for name in (_INSTANCE, _LOCATION) if config.location else (_INSTANCE,):
        if name in facts:
            given.pop(name, None)
    attributes = {**_SDK, _SERVICE: SERVICE_NAME, **facts, **given, **identity}
    # Not Resource.create: it starts threads, which a process that is exiting can't, and it might have to export.
    return Resource({_sendable(name): _sendable(value) for name, value in attributes.items() if value != ""})


def _sendable(value: Any) -> Any:
    """Text as UTF-8: a variable may hold any bytes, and one of them would lose every export."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return tuple(map(_sendable, value)) if isinstance(value, (list, tuple)) else value


class Facts:
    """What a process knows of where it runs: its environment's facts at once, those asked for a little later."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self._config = config
        self._environ = environ
        self._answers: dict[str, AttributeValue] = {}
        self._asking: threading.Thread | None = None
        self._pid = 0
        self._process: dict[str, AttributeValue] = {}

    def start(self) -> None:
        """Begin to ask Google's metadata server, and the SDK's detectors that are named in `DETECTORS`.

        In a thread, which is not started where there is nobody to ask.
        """
        if on_google_cloud(self._environ) or self._environ.get(DETECTORS):
            self._asking = threading.Thread(target=self._ask, name="rlotel-resource", daemon=True)
            self._asking.start()

    def get(self) -> dict[str, AttributeValue]:
        """All that is known now: the same `service.instance.id` each time, a new one in a forked child."""
        if self._pid != os.getpid():
            self._pid, self._process = os.getpid(), process_facts(self._config, self._environ)
        if self._asking is not None:
            self._asking.join(ANSWER_WAIT)
        return {**self._answers, **self._process}

    def _ask(self) -> None:
        self._answers = dict(gcp_facts(self._environ))
        if self._environ.get(DETECTORS):
            try:
                detected = Resource.create().attributes
            except Exception as error:  # noqa: BLE001 - a detector is somebody else's code
                log.warning("rlotel: the resource detectors in %s failed: %s", DETECTORS, error)
            else:
                known = {_SERVICE, _INSTANCE, *_SDK}
                self._answers |= {name: value for name, value in detected.items() if name not in known}


def _first_line(path: Path) -> str:
    try:
        return path.read_text("utf-8").partition("\n")[0].strip()
    except (OSError, ValueError):
        return ""
