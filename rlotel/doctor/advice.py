"""What to do next, from what the doctor found."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from rlotel import handover
from rlotel.config import SETTINGS, variable_of
from rlotel.doctor.inventory import Framework, Gpu
from rlotel.doctor.message import Plain
from rlotel.doctor.trial import Trial
from rlotel.endpoint import Destination


def misnamed(environ: Mapping[str, str]) -> Iterator[str]:
    """What to do about each variable that is set for rlotel and read by nobody."""
    names = [variable_of(setting) for setting in SETTINGS]
    known = {*names, handover.ATTEMPT, handover.LAUNCHER, handover.DEFAULTS}
    for name in sorted(environ):
        if name.startswith("RLOTEL_") and name not in known:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
            hint = f"did you mean {near[0]}?" if near else "`rlotel run --help` lists what there is."
            yield f"{name} is set, and is no setting: {hint}"


def next_steps(
    off: str,
    destinations: Sequence[Destination],
    trials: Sequence[Trial],
    resource: Mapping[str, Plain],
    frameworks: Sequence[Framework],
    gpu: Gpu,
) -> Iterator[str]:
    """The steps in the order in which they are worth taking; never none."""
    if off:
        yield f"Everything is switched off by {off}: unset it to send telemetry."
        return
    failed = [trial for trial in trials if not trial.ok]
    repairs: dict[str, list[str]] = {}
    for destination, trial in zip(destinations, trials, strict=True):
        if not trial.ok:
            repairs.setdefault(_repair(destination, trial), []).append(trial.signal)
    for repair, signals in repairs.items():
        yield f"{' and '.join(signals).capitalize()} do not arrive: {repair}"
    if any(destination.kind == "capture" for destination in destinations) and not failed:
        yield (
            "No endpoint is set, so telemetry stays in a file here. To send it: RLOTEL_ENDPOINT=http://host:4318 "
            "(a collector; on GKE with Managed OpenTelemetry the one in the cluster)."
        )
    if any(map(_is_googles, destinations)) and "location" not in resource:
        yield (
            "Google Cloud stores metrics under a location, and this is no machine of Google Cloud: set "
            "RLOTEL_LOCATION, for example us-central1."
        )
    yield from _about_gpus(gpu)
    present = [framework.name for framework in frameworks if framework.present and not framework.known]
    if present:
        yield (
            f"There is no integration for {', '.join(present)}: say what its log keys mean with "
            "rlotel.adapters.follow(), or mark the loop with rlotel.loop(), sample(), train() and sync()."
        )
    if not failed:
        yield "Start training: `rlotel run -- python train.py`, or `rlotel.instrument()` before it."


def _about_gpus(gpu: Gpu) -> Iterator[str]:
    if gpu.package is None and (gpu.library or gpu.driver):
        yield "There is an NVIDIA driver; to see the GPUs: pip install 'rlotel[gpu]'"
    elif gpu.problem and (gpu.library or gpu.driver):
        yield f"The GPUs cannot be read ({gpu.problem}): try nvidia-smi."


def _repair(destination: Destination, trial: Trial) -> str:
    where = destination.source or "RLOTEL_CAPTURE"
    if trial.failed_at == "name":
        advice = f"correct the host in {where}; within Kubernetes it is service.namespace.svc.cluster.local"
    elif trial.failed_at == "connection":
        advice = f"start a collector there, open the way to it, or correct {where}"
    elif destination.kind == "capture":
        advice = f"set {where} to a file in a folder that can be written"
    elif trial.cause.startswith("not allowed") and _is_googles(destination):
        advice = (
            "give the service account roles/telemetry.writer (or its halves telemetry.metricsWriter and "
            "telemetry.tracesWriter) and roles/serviceusage.serviceUsageConsumer, and enable the API "
            "telemetry.googleapis.com"
        )
    elif trial.proxy:
        advice = f"see what the proxy {trial.proxy} says, or name the host in NO_PROXY"
    elif trial.outcome == "rejected":
        advice = "see the collector's log for what it does not take"
    else:
        return f"{trial.cause}. The address is from {where}."  # such a cause says itself what to change
    return f"{trial.cause}. To repair it, {advice}."


def _is_googles(destination: Destination) -> bool:
    return (urlsplit(destination.url).hostname or "").endswith("googleapis.com")
