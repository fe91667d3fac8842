"""The doctor: what is installed, what would be sent, and whether it arrives. Starts nothing of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rlotel import integrations, resource
from rlotel.config import SDK_DISABLED, Config, sdk_disabled
from rlotel.doctor import advice
from rlotel.doctor.inventory import Framework, Gpu, frameworks, gpu, versions
from rlotel.doctor.message import Plain
from rlotel.doctor.trial import Trial, attempt
from rlotel.endpoint import Destination
from rlotel.endpoint import resolve_all as resolve_endpoints
from rlotel.identity import Identity
from rlotel.semconv import attributes as attr


@dataclass(frozen=True)
class Report:
    """What the doctor found."""

    versions: Mapping[str, str]
    frameworks: tuple[Framework, ...]
    identity: Mapping[str, str]
    run_id_is_random: bool
    resource: Mapping[str, Plain]
    destinations: tuple[Destination, ...]
    off: str
    """The variable that switches everything off; empty if none does."""
    trials: tuple[Trial, ...]
    gpu: Gpu
    next_steps: tuple[str, ...]

    @property
    def delivers(self) -> bool:
        """Whether everything that would be sent arrives."""
        return all(trial.ok for trial in self.trials)


def examine(config: Config, environ: Mapping[str, str], progress: Callable[[str], None]) -> Report:
    """Look at everything, and send one metric and one span. Takes some 5 s for each that does not arrive.

    Args:
        config: the settings.
        environ: the environment they come from.
        progress: told in words what is being tried.

    Raises:
        SettingError: a setting cannot be used.
    """
    chosen = integrations.chosen(config.frameworks)
    destinations = resolve_endpoints(config, environ)
    off = switched_off(config, environ)
    facts = resource.Facts(config, environ)
    facts.start()
    identity = Identity(config, environ).freeze()
    attributes = resource.build(config, identity, facts.get(), environ).attributes
    sent: dict[str, Plain] = {
        name: value if isinstance(value, (str, bool, int, float)) else repr(value)
        for name, value in attributes.items()
    }
    trials = []
    for destination in destinations if not off else ():
        if destination.kind == "otlp":
            progress(f"sending a test to {destination.describe()} ({destination.signal})")
        trials.append(attempt(destination, config, sent))
    progress("looking for GPUs")
    found_gpu = gpu()
    found_frameworks = frameworks(chosen)
    return Report(
        versions(),
        found_frameworks,
        identity,
        Identity(config, environ).run_id != identity[attr.RUN_ID.name],
        sent,
        destinations,
        off,
        tuple(trials),
        found_gpu,
        (
            *advice.misnamed(environ),
            *advice.next_steps(off, destinations, trials, sent, found_frameworks, found_gpu),
        ),
    )


def switched_off(config: Config, environ: Mapping[str, str]) -> str:
    """The variable that switches all telemetry off; empty if it is on."""
    if not config.enabled:
        return config.named("enabled")
    return SDK_DISABLED if sdk_disabled(environ) else ""
