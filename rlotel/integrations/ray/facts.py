"""What Ray tells of a process, for its Resource; the names are those of OpenTelemetry's detector for Ray."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from rlotel.process import Facts


def connected() -> Any:
    """Ray, if it is connected in this process, else None. Its module may be there and only half imported."""
    ray = sys.modules.get("ray")
    return ray if getattr(ray, "is_initialized", bool)() else None


def read() -> Facts:
    """Job, node, worker, actor and GPUs of this process, as far as Ray is connected here. Asks no network."""
    ray = connected()
    if ray is None:
        return {}
    here = ray.get_runtime_context()
    worker = ray._private.worker.global_worker  # noqa: SLF001 - nothing public says what kind of process it is
    in_worker = worker.mode == ray.WORKER_MODE
    asked = {
        "ray.version": lambda: ray.__version__,
        "ray.job.id": here.get_job_id,
        "ray.node.id": here.get_node_id,
        "ray.worker.id": here.get_worker_id,
        "ray.worker.process_type": lambda: "worker" if in_worker else "driver",
        "ray.namespace": lambda: here.namespace,
        "ray.cluster.session_name": lambda: worker.node.session_name,
        "ray.cluster.gcs_address": lambda: here.gcs_address,
    }
    if in_worker:
        asked |= {
            "ray.actor.id": here.get_actor_id,
            "ray.actor.name": here.get_actor_name,
            "ray.actor.class": lambda: _actor_class(worker),
            "ray.gpu.ids": lambda: ",".join(map(str, ray.get_gpu_ids())),
        }
    facts = {}
    for name, ask in asked.items():
        # Which of them there are differs between Ray's releases, and in Ray Client most have no meaning.
        with contextlib.suppress(Exception):
            if value := ask():
                facts[name] = str(value)
    return facts


def _actor_class(worker: Any) -> str | None:
    actor = worker.actors.get(worker.actor_id)
    return None if actor is None else type(actor).__name__
