"""`rlotel doctor`: says in plain words, or in JSON, what is here, what will be sent and whether it arrives."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from rlotel.cli.options import named_as_given, settled, with_settings
from rlotel.errors import SettingError
from rlotel.semconv import attributes as attr

if TYPE_CHECKING:
    from rlotel.doctor import Report
    from rlotel.doctor.trial import Trial
    from rlotel.endpoint import Destination

NOT_DELIVERED = 1
WRONG_SETTING = 2


@with_settings
@click.command(context_settings={"max_content_width": 100})
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def doctor(as_json: bool, **options: str | None) -> None:
    """Say what is installed, what will be sent and where to, and whether it arrives.

    Sends one metric and one span as the service rlotel-doctor. Each option is a setting, as for `rlotel run`;
    without options those of the environment hold.

    Exits with 0 if what would be sent arrives, 1 if it does not, 2 if a setting is wrong.
    """
    from rich.console import Console

    from rlotel.doctor import examine

    try:
        config, environ = settled(options, os.environ)
        with Console(stderr=True).status("looking around") as status:
            report = examine(config, environ, status.update)
    except SettingError as error:
        named = named_as_given(error, options)
        if not as_json:
            raise named from error
        click.echo(json.dumps({"error": {"setting": named.setting, "message": str(named)}}, indent=2))
        sys.exit(WRONG_SETTING)
    if as_json:
        click.echo(json.dumps(as_data(report), indent=2))
    else:
        # Lines are for people and for `grep`: the terminal wraps them, we do not.
        Console(highlight=False, soft_wrap=True).print("\n".join(lines(report)))
    sys.exit(0 if report.delivers else NOT_DELIVERED)


def as_data(report: Report) -> dict[str, Any]:
    """The report as JSON has it. Headers are left out but for their names: they may be tokens."""
    data = dataclasses.asdict(report)
    for destination in data["destinations"]:
        destination["headers"] = sorted(destination["headers"])
    return {"delivers": report.delivers, **data}


def lines(report: Report) -> Iterator[str]:
    """The report in words, with the marks of rich."""
    from rich.markup import escape

    sections = (
        ("Installed", (f"{name} {version}" for name, version in report.versions.items())),
        ("Frameworks", _frameworks(report)),
        ("Identity, on every point and span", _identity(report)),
        (
            "Resource",
            (f"{name}={value}" for name, value in report.resource.items() if name not in report.identity),
        ),
        ("Where to", map(_destination, report.destinations)),
        ("Does it arrive", map(_trial, report.trials) if report.trials else ("not tried: nothing would be sent",)),
        ("GPUs", _gpu(report)),
    )
    for title, content in sections:
        yield f"[bold]{title}[/bold]"
        yield from (f"  {escape(line)}" for line in content)
        yield ""
    yield "[bold]What to do next[/bold]"
    yield from (f"  {number}. {escape(step)}" for number, step in enumerate(report.next_steps, 1))


def _frameworks(report: Report) -> Iterator[str]:
    for framework in report.frameworks:
        name = f"{framework.name} {framework.version}" if framework.version else framework.name
        if not framework.present:
            yield f"{name}: not installed"
        elif framework.instrumented:
            yield f"{name}: will be instrumented"
        elif framework.known:
            yield f"{name}: installed, but left out by the setting frameworks"
        else:
            yield f"{name}: installed; rlotel has no integration for it"


def _identity(report: Report) -> Iterator[str]:
    for name, value in report.identity.items():
        is_random = name == attr.RUN_ID.name and report.run_id_is_random
        yield f"{name}={value}" + (" (random, another one at every start: set RLOTEL_RUN_ID)" if is_random else "")


def _destination(destination: Destination) -> str:
    said = f"set by {destination.source}" if destination.source else "the default"
    if destination.kind != "otlp":
        words = {"capture": "kept in a local file", "console": "printed", "off": "not sent"}[destination.kind]
        return f"{destination.signal}: {words} ({said})" + (f"; {destination.note}" if destination.note else "")
    how = [destination.protocol, "plaintext" if destination.insecure else "TLS", said]
    if destination.headers:
        how.append(f"headers {', '.join(sorted(destination.headers))}")
    note = f"; {destination.note}" if destination.note else ""
    return f"{destination.signal}: {destination.describe()} ({', '.join(how)}){note}"


def _trial(trial: Trial) -> str:
    through = f" through the proxy {trial.proxy}" if trial.proxy else ""
    said = f": {trial.cause}" if trial.cause else ""
    if trial.outcome == "arrived":
        return f"{trial.signal}: arrived at {trial.place}{through} in {trial.seconds:.2f} s{said}"
    words = {
        "rejected": f"REJECTED by {trial.place}{through}{said}",
        "failed": f"NOT ARRIVED at {trial.place}{through}{said}",
        "kept": f"{trial.place} can be written",
        "off": "not sent, as it is set",
    }
    return f"{trial.signal}: {words[trial.outcome]}"


def _gpu(report: Report) -> Iterator[str]:
    gpu = report.gpu
    yield f"NVIDIA driver: {gpu.driver or ('its library is here' if gpu.library else 'none')}"
    yield f"nvidia-ml-py: {gpu.package or 'not installed'}" + (f" ({gpu.problem})" if gpu.problem else "")
    for index, name in enumerate(gpu.devices):
        yield f"GPU {index}: {name}"
