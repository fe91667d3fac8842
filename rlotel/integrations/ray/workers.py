"""Reaching the workers: the environment they start in says which run they belong to.

`ray.init` gets it into the job's `runtime_env`; once Ray is connected, or in a worker that nobody reached, each
new task and actor gets it. What the user's own `runtime_env` says wins, variable by variable.
"""

from __future__ import annotations

import copy
import importlib.metadata
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from rlotel.autostart import FOLDER, PTH
from rlotel.handover import DEFAULTS
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder
from rlotel.resource import RAY_JOB_CONFIG

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_PYTHONPATH = "PYTHONPATH"


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch where jobs, actors and tasks are started."""
    reach = _Reach(recorder)
    patches.watch("ray:init", change=reach.start_job, after=reach.job_started)
    patches.watch("ray.actor:ActorClass._remote", change=reach.start_actor)
    patches.watch("ray.remote_function:RemoteFunction._remote", change=reach.start_task)


def merged(ours: Mapping[str, str], theirs: Mapping[str, str], job: Mapping[str, str]) -> dict[str, str]:
    """The variables of a `runtime_env`: theirs, and those of ours that nobody else has set.

    Args:
        ours: what the workers need.
        theirs: what the user gave here.
        job: what is set for the whole job; Ray refuses a job whose driver sets one of these again.
    """
    variables = {**{name: value for name, value in ours.items() if name not in job}, **theirs}
    if _PYTHONPATH in ours and _PYTHONPATH in theirs and FOLDER not in theirs[_PYTHONPATH].split(os.pathsep):
        variables[_PYTHONPATH] = f"{theirs[_PYTHONPATH]}{os.pathsep}{FOLDER}"
    return variables


class _Reach:
    """How the workers of this process's job are reached."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # What starts in a worker that was reached inherits its runtime_env.
        self._by_job = bool(os.environ.get(DEFAULTS))
        self._serialized: str | None = None

    def variables(self) -> dict[str, str]:
        """What the workers need in their environment."""
        ours = self._recorder.process.handover()
        if FOLDER in os.environ.get(_PYTHONPATH, "").split(os.pathsep) or not _has_pth():
            # Ray puts the worker's own in place of the reference.
            ours[_PYTHONPATH] = f"{FOLDER}{os.pathsep}${{{_PYTHONPATH}}}"
        return ours

    def start_job(self, call: Call) -> Arguments:
        """`ray.init`: the job's `runtime_env`."""
        kwargs = dict(call.kwargs)
        theirs = kwargs.get("runtime_env")
        if theirs is None:
            # One given as an argument takes the place of this one.
            theirs = getattr(kwargs.get("job_config"), "runtime_env", None)
        theirs = dict(theirs or {})
        theirs["env_vars"] = merged(self.variables(), theirs.get("env_vars") or {}, _submitted())
        kwargs["runtime_env"] = theirs
        return call.args, kwargs

    def job_started(self, call: Call) -> None:  # noqa: ARG002 - an observer
        """`ray.init` has returned: all that starts now is reached."""
        self._by_job = True
        self._recorder.used = True

    def start_actor(self, call: Call) -> Arguments:
        """An actor is created."""
        if self._reached():
            return call.args, call.kwargs
        return call.args, {**call.kwargs, "runtime_env": self._extended(call.kwargs.get("runtime_env"))}

    def start_task(self, call: Call) -> Arguments:
        """A task is submitted; Ray has made its `runtime_env` into text already."""
        if self._reached():
            return call.args, call.kwargs
        theirs = call.kwargs.get("runtime_env")
        serialized = self._serialized if theirs is None else None
        if serialized is None:
            serialized = _serialize(self._extended(theirs))
            if theirs is None:
                self._serialized = serialized
        return call.args, {**call.kwargs, "serialized_runtime_env_info": serialized}

    def _reached(self) -> bool:
        # Where Ray is not connected yet, the call itself will call `ray.init`.
        return self._by_job or not sys.modules["ray"].is_initialized()

    def _extended(self, theirs: Any) -> Any:
        import ray
        from ray.runtime_env import RuntimeEnv

        job = ray.get_runtime_context().runtime_env.get("env_vars") or {}
        runtime_env = RuntimeEnv() if theirs is None else copy.deepcopy(theirs)
        runtime_env["env_vars"] = merged(self.variables(), runtime_env.get("env_vars") or {}, job)
        return runtime_env


def _serialize(runtime_env: Any) -> str:
    from ray._private.utils import get_runtime_env_info

    return str(get_runtime_env_info(runtime_env, is_job_runtime_env=False, serialize=True))


def _submitted() -> Mapping[str, str]:
    """The variables that `ray job submit` set for the job of this driver."""
    if RAY_JOB_CONFIG not in os.environ or os.environ.get("RAY_OVERRIDE_JOB_RUNTIME_ENV") == "1":
        return {}
    job = json.loads(os.environ[RAY_JOB_CONFIG])
    return (job.get("runtime_env") or {}).get("env_vars") or {}


def _has_pth() -> bool:
    """Whether rlotel is installed with the file by which a Python starts it."""
    try:
        files = importlib.metadata.files("rlotel") or []
    except importlib.metadata.PackageNotFoundError:
        return False
    return any(file.name == PTH for file in files)
