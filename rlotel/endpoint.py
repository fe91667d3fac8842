"""Where each signal is sent, worked out from the settings and the OpenTelemetry variables; pure, no I/O but stat.

It reads what the exporters of the SDK get wrong or refuse: an endpoint without a scheme (the GKE tutorials set
`host:4317`, which the SDK takes for TLS), `1` and `yes` for `*_INSECURE`, a base URL given for one signal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import SplitResult, urlsplit

from rlotel.errors import SettingError
from rlotel.otlp_variables import Compression, OtlpVariables, Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlotel.config import Config, Protocol

Kind = Literal["otlp", "console", "capture", "off"]

SIGNALS: tuple[Signal, ...] = ("metrics", "traces")

_GRPC_PORT = 4317
_HTTP_PORT = 4318
_GRPC_SCHEMES = {"dns", "unix"}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(unix):")
_SIGNAL_PATH = re.compile(r"/v1/(metrics|traces|logs)$")
_SDK_EXPORTERS = {"otlp": None, "otlp_proto_grpc": "grpc", "otlp_proto_http": "http/protobuf"}


@dataclass(frozen=True)
class Destination:
    """Where one signal goes, and how."""

    signal: Signal
    kind: Kind
    source: str
    """What said so: `argument`, or the name of a variable; empty for the default."""
    protocol: Protocol = "http/protobuf"
    url: str = ""
    """The whole URL of a POST, or `http(s)://host:port` of a gRPC server, or its target (`dns:///…`)."""
    insecure: bool = True
    """Whether it is plaintext."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str | None = None
    """File of the certificates to trust instead of the system's."""
    client_certificate: str | None = None
    client_key: str | None = None
    timeout: float = 10.0
    """Seconds that one export may take, its retries included."""
    compression: Compression = "none"
    note: str = ""
    """What the user should be told about this choice; said once."""

    @property
    def target(self) -> str:
        """What a gRPC channel is opened to."""
        return re.sub(r"^https?://", "", self.url)

    def describe(self) -> str:
        """The place in one word, safe to show: without query and headers."""
        return self.url.partition("?")[0] if self.kind == "otlp" else self.kind


@dataclass(frozen=True)
class _Address:
    """An endpoint as it was written, taken apart."""

    setting: str
    """How an error names it."""
    source: str
    for_one_signal: bool
    scheme: str
    parts: SplitResult
    port: int | None
    text: str


def resolve(signal: Signal, config: Config, environ: Mapping[str, str]) -> Destination:
    """Settle where a signal goes.

    The endpoint is the first of: argument or `RLOTEL_ENDPOINT`, `OTEL_EXPORTER_OTLP_{SIGNAL}_ENDPOINT`,
    `OTEL_EXPORTER_OTLP_ENDPOINT`, none (then it is captured locally). To an endpoint for HTTP `/v1/{signal}` is
    appended, unless it is there; to one that was given for this signal alone only if it has no path at all
    (OpenTelemetry would post to `/`, where no collector listens).

    Without a scheme it is plaintext, unless headers, a CA or `*_INSECURE=false` are given: secrets are not sent
    in the clear because a scheme was forgotten.

    Raises:
        SettingError: a value cannot be used; the message names the variable.
    """
    variables = OtlpVariables(signal, environ)
    chosen, protocol_of_exporter, note = _exporter(signal, environ)
    if chosen != "otlp":
        return Destination(signal, chosen, f"OTEL_{signal.upper()}_EXPORTER")
    address = _address(config, variables)
    if address is None:
        return Destination(signal, "capture", "", note=note)
    protocol = _protocol(config, variables, address, protocol_of_exporter)
    headers = variables.headers(config, protocol)
    ca = variables.file("CERTIFICATE")
    insecure = _insecure(address, variables, bool(headers) or ca is not None)
    return Destination(
        signal,
        "otlp",
        address.source,
        protocol,
        _grpc_url(address, insecure) if protocol == "grpc" else _http_url(address, insecure, signal),
        insecure,
        headers,
        ca,
        variables.file("CLIENT_CERTIFICATE"),
        variables.file("CLIENT_KEY"),
        variables.timeout(),
        variables.compression(protocol),
        note,
    )


def resolve_all(config: Config, environ: Mapping[str, str]) -> tuple[Destination, ...]:
    """Settle where each signal goes.

    Raises:
        SettingError: a value cannot be used; the message names the variable.
    """
    return tuple(resolve(signal, config, environ) for signal in SIGNALS)


def _exporter(signal: Signal, environ: Mapping[str, str]) -> tuple[Kind, str | None, str]:
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    names = [name.strip().lower() for name in environ.get(variable, "").split(",") if name.strip()]
    for name in names:
        if name in _SDK_EXPORTERS:
            return "otlp", _SDK_EXPORTERS[name], ""
    if "console" in names:
        return "console", None, ""
    if "none" in names:
        return "off", None, ""
    note = f"{variable}={','.join(names)} is not an exporter of rlotel's, which sends OTLP" if names else ""
    return "otlp", None, note


def _address(config: Config, variables: OtlpVariables) -> _Address | None:
    if config.endpoint:
        source = config.sources.get("endpoint", "argument")
        return _parse(config.named("endpoint"), source, config.endpoint.strip(), for_one_signal=False)
    found = variables.find("ENDPOINT")
    if found is None:
        return None
    variable, text = found
    return _parse(variable, variable, text, for_one_signal=variable != "OTEL_EXPORTER_OTLP_ENDPOINT")


def _parse(setting: str, source: str, text: str, *, for_one_signal: bool) -> _Address:
    if any(character <= " " or character == "\x7f" for character in text):
        raise SettingError(setting, f"{text!r} contains a space or a control character")
    match = _SCHEME.match(text)
    scheme = (match[1] or match[2]).lower() if match else ""
    if scheme not in {"", "http", "https", *_GRPC_SCHEMES}:
        raise SettingError(setting, f"{text!r}: use http://, https:// or host:port, not {scheme}://")
    try:
        parts = urlsplit(text if scheme else f"//{text}")
        port = parts.port
    except ValueError as error:
        raise SettingError(setting, f"{text!r} is no URL and no host:port: {error}") from None
    if scheme not in _GRPC_SCHEMES:
        _check_host(setting, text, parts, port)
    return _Address(setting, source, for_one_signal, scheme, parts, port, text)


def _check_host(setting: str, text: str, parts: SplitResult, port: int | None) -> None:
    host = parts.hostname
    if not host:
        raise SettingError(setting, f"{text!r} has no host: use http://host:4318 or host:4317")
    if parts.username is not None or parts.password is not None:
        raise SettingError(setting, "a user or password in the URL is not sent: use headers instead")
    if port == 0:
        raise SettingError(setting, f"{text!r}: port 0 cannot be reached")
    try:
        if ":" not in host:
            host.encode("idna")
    except UnicodeError:
        raise SettingError(setting, f"{text!r}: {host!r} is no host name") from None


def _protocol(config: Config, variables: OtlpVariables, address: _Address, of_exporter: str | None) -> Protocol:
    if config.protocol:
        setting, protocol = config.named("protocol"), str(config.protocol)
    elif found := variables.find("PROTOCOL"):
        setting, protocol = found[0], found[1].lower()
    else:
        by_address = address.port == _GRPC_PORT or address.scheme in _GRPC_SCHEMES
        setting, protocol = "", of_exporter or ("grpc" if by_address else "http/protobuf")
    if protocol == "http/json":
        raise SettingError(setting, "http/json is not sent; use http/protobuf, which the same port takes")
    if protocol not in {"grpc", "http/protobuf"}:
        raise SettingError(setting, f"{protocol!r} is no protocol: use grpc or http/protobuf")
    if protocol != "grpc" and address.scheme in _GRPC_SCHEMES:
        raise SettingError(address.setting, f"{address.text!r} is an address for gRPC, but the protocol is HTTP")
    return cast("Protocol", protocol)


def _insecure(address: _Address, variables: OtlpVariables, has_secrets: bool) -> bool:
    if address.scheme in {"http", "https"}:
        return address.scheme == "http"
    said = variables.insecure()
    return not has_secrets if said is None else said


def _grpc_url(address: _Address, insecure: bool) -> str:
    if address.scheme in _GRPC_SCHEMES:
        return address.text
    scheme = "http" if insecure else "https"
    port = address.port or (443 if address.scheme == "https" else _GRPC_PORT)
    return f"{scheme}://{_host(address)}:{port}"


def _http_url(address: _Address, insecure: bool, signal: Signal) -> str:
    path = address.parts.path.rstrip("/")
    if not (address.for_one_signal and path):
        path = _SIGNAL_PATH.sub("", path) + f"/v1/{signal}"
    port = address.port or (None if address.scheme else _HTTP_PORT)
    parts = address.parts._replace(
        scheme="http" if insecure else "https",
        netloc=_host(address) + (f":{port}" if port else ""),
        path=path,
        fragment="",
    )
    return parts.geturl()


def _host(address: _Address) -> str:
    host = address.parts.hostname or ""
    return f"[{host}]" if ":" in host else host
