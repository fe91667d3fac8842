"""Every setting of rlotel, once: its name, variables, default and meaning.

Precedence: argument of `instrument()`, then `RLOTEL_*`, then the `OTEL_*` variable or another tool's, then the
default. An empty variable counts as unset. The table in the README is made from here.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from rlotel.errors import SettingError

Protocol = Literal["grpc", "http/protobuf"]


def truth(value: str | bool) -> bool:
    """Read yes or no as people write it in an environment.

    Raises:
        ValueError: it is neither.
    """
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError("use true or false")


SDK_DISABLED = "OTEL_SDK_DISABLED"


def sdk_disabled(environ: Mapping[str, str]) -> bool:
    """Whether `OTEL_SDK_DISABLED` turns OpenTelemetry off; as OpenTelemetry has it, only a clear yes does."""
    try:
        return truth(environ.get(SDK_DISABLED, ""))
    except ValueError:
        return False


def _text(value: object) -> str:
    if isinstance(value, (bool, bytes)):
        raise TypeError("use a string")
    return str(value).strip()


def _positive(value: str | float) -> float:
    wanted = "use a number above 0"
    number = _number(value, wanted)
    if not 0 < number < float("inf"):
        raise ValueError(wanted)
    return number


def _number(value: str | float, wanted: str) -> float:
    if isinstance(value, bool):
        raise TypeError(wanted)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(wanted) from None


def _count(value: str | float) -> int:
    wanted = "use a whole number of 1 or more"
    number = _number(value, wanted)
    if not (number >= 1 and number.is_integer()):
        raise ValueError(wanted)
    return int(number)


def _pairs(value: str | Mapping[str, str]) -> Mapping[str, str]:
    if isinstance(value, Mapping):
        return {_text(key): _text(content) for key, content in value.items()}
    pairs = {}
    for item in filter(None, (part.strip() for part in value.split(","))):
        key, equals, content = item.partition("=")
        if not (equals and key.strip()):
            raise ValueError("it is not key=value, separated by commas")  # not the item: it may be a secret
        pairs[unquote(key).strip()] = unquote(content).strip()  # as OTEL_EXPORTER_OTLP_HEADERS is written
    return pairs


def _protocol(value: str) -> str:
    if value not in {"grpc", "http/protobuf"}:
        raise ValueError("use grpc or http/protobuf")
    return value


def _names(value: str | Iterable[str]) -> tuple[str, ...] | Literal["auto"]:
    if isinstance(value, str):
        if value.strip() == "auto":
            return "auto"
        return tuple(filter(None, (name.strip() for name in value.split(","))))
    return tuple(_text(name) for name in value)


def _milliseconds(value: str) -> float:
    return _positive(value) / 1000


@dataclass(frozen=True)
class Variable:
    """An environment variable that a setting is read from, and how."""

    name: str
    parse: Callable[[str], Any] | None = None


def _setting(
    help: str,  # noqa: A002 - the word that click and argparse use
    *variables: str | Variable,
    default: Any = None,
    parse: Callable[[Any], Any] = _text,
) -> Any:
    listed = tuple(Variable(v) if isinstance(v, str) else v for v in variables)
    return field(default=default, metadata={"help": help, "variables": listed, "parse": parse})


@dataclass(frozen=True)
class Config:
    """What one session was told. Built by `resolve`; `sources` says where each value came from."""

    run_id: str | None = _setting(
        "Name of the run, the same in all its processes and restarts. Without one: the Ray submission, "
        "JobSet or Slurm id, else a random one.",
        "RLOTEL_RUN_ID",
        "NEMO_RL_OTEL_RUN_ID",
    )
    system: str | None = _setting(
        "Name of the training framework; set by the integration that is found. A loop of one's own is `custom`.",
        "RLOTEL_SYSTEM",
    )
    system_version: str | None = _setting("Version of the training framework.", "RLOTEL_SYSTEM_VERSION")
    algorithm: str | None = _setting("Algorithm, such as GRPO or PPO.", "RLOTEL_ALGORITHM")
    model: str | None = _setting("Name of the model that is trained.", "RLOTEL_MODEL")
    environment: str | None = _setting("Name of the environment or prompt data set.", "RLOTEL_ENVIRONMENT")
    environment_type: str | None = _setting(
        "Kind of environment: simulated, reward_model or live.", "RLOTEL_ENVIRONMENT_TYPE"
    )
    frameworks: tuple[str, ...] | Literal["auto"] = _setting(
        "Which integrations to connect: `auto` for those that are found, or names separated by commas; one "
        "that is named and missing is an error.",
        "RLOTEL_FRAMEWORKS",
        default="auto",
        parse=_names,
    )
    gpus: int | None = _setting(
        "GPUs of the whole run, for rates per GPU and MFU; an integration knows them. Where nobody "
        "does, these are absent.",
        "RLOTEL_GPUS",
        parse=_count,
    )
    peak_flops: float | None = _setting(
        "Peak dense FLOP/s of one GPU in the precision that is trained in, for MFU; known for the "
        "usual GPUs. Where nobody knows it, MFU is absent.",
        "RLOTEL_PEAK_FLOPS",
        parse=_positive,
    )
    peak_bandwidth: float | None = _setting(
        "Peak bytes/s of one GPU's memory, for the bandwidth share of sampling (MBU); known for the usual GPUs.",
        "RLOTEL_PEAK_BANDWIDTH",
        parse=_positive,
    )
    gpu: bool = _setting(
        "Whether to read the GPUs of each node, through NVIDIA's NVML.", "RLOTEL_GPU", default=True, parse=truth
    )
    enabled: bool = _setting(
        "Off makes every call of rlotel a no-op.", "RLOTEL_ENABLED", default=True, parse=truth
    )
    endpoint: str | None = _setting(
        "OTLP collector for metrics and traces, such as http://host:4318 or host:4317. Without one, telemetry "
        "goes to a local capture file.",
        "RLOTEL_ENDPOINT",
    )
    protocol: Protocol | None = _setting(
        "grpc or http/protobuf; by default grpc for port 4317, else http/protobuf.",
        "RLOTEL_PROTOCOL",
        parse=_protocol,
    )
    headers: Mapping[str, str] | None = _setting(
        "Headers for the collector, as key=value separated by commas, percent-encoded where needed.",
        "RLOTEL_HEADERS",
        parse=_pairs,
    )
    export_interval: float = _setting(
        "Seconds between exports of metrics. Google Cloud takes one point per series every 5 s.",
        "RLOTEL_EXPORT_INTERVAL",
        Variable("OTEL_METRIC_EXPORT_INTERVAL", _milliseconds),
        default=15.0,
        parse=_positive,
    )
    capture: str | None = _setting(
        "File for the local capture (OTLP JSON lines) when there is no endpoint; by default one in the "
        "temporary folder.",
        "RLOTEL_CAPTURE",
    )
    location: str | None = _setting(
        "Google Cloud location that the telemetry is stored under; found by itself on Google Cloud.",
        "RLOTEL_LOCATION",
    )
    sources: Mapping[str, str] = field(default_factory=dict)
    """Setting to where it came from: `argument` or the variable's name. Absent means default."""

    def named(self, setting: str) -> str:
        """How an error names a setting: by the variable it came from, or by its own name."""
        source = self.sources.get(setting, "argument")
        return setting if source == "argument" else source


SETTINGS = tuple(item for item in dataclasses.fields(Config) if "help" in item.metadata)


def variable_of(setting: dataclasses.Field[Any]) -> str:
    """The name of the variable that a setting is read from; of several the one that wins."""
    return str(setting.metadata["variables"][0].name)


def resolve(arguments: Mapping[str, object], environ: Mapping[str, str]) -> Config:
    """Settle every setting.

    Args:
        arguments: what `instrument()` was called with; None means not given.
        environ: the process's environment.

    Raises:
        SettingError: a value cannot be used; the message names the argument or the variable.
        TypeError: there is no such argument.
    """
    if unknown := arguments.keys() - {setting.name for setting in SETTINGS}:
        raise TypeError(f"there is no setting {', '.join(sorted(unknown))}")
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        found = _find(setting, arguments.get(setting.name), environ)
        if found is not None:
            values[setting.name], sources[setting.name] = found
    return Config(**values, sources=sources)


def _find(
    setting: dataclasses.Field[Any], argument: object, environ: Mapping[str, str]
) -> tuple[object, str] | None:
    parse = setting.metadata["parse"]
    if argument is not None:
        return _parsed(setting.name, argument, parse), "argument"
    for variable in setting.metadata["variables"]:
        if text := environ.get(variable.name, "").strip():
            return _parsed(variable.name, text, variable.parse or parse), variable.name
    return None


def _parsed(name: str, value: object, parse: Callable[[Any], Any]) -> object:
    try:
        return parse(value)
    except Exception as error:  # noqa: BLE001 - whatever an argument's own methods raise
        shown = "its value" if parse is _pairs else reprlib.repr(value)
        raise SettingError(name, f"{shown} cannot be used: {error}") from None
