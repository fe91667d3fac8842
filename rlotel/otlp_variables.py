"""The `OTEL_EXPORTER_OTLP_*` variables of one signal: headers, files, time-out, compression."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import unquote

from rlotel.config import Config, Protocol, truth
from rlotel.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

Signal = Literal["metrics", "traces"]
Compression = Literal["none", "gzip", "deflate"]

_HTTP_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_GRPC_NAME = re.compile(r"[0-9a-z_.-]+(?<!-bin)")
_VALUE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True)
class OtlpVariables:
    """What the environment says about one signal; the signal's own variable wins over the general one."""

    signal: Signal
    environ: Mapping[str, str]

    def find(self, name: str) -> tuple[str, str] | None:
        """The variable's name and its text; empty is unset."""
        for variable in (
            f"OTEL_EXPORTER_OTLP_{self.signal.upper()}_{name}",
            f"OTEL_EXPORTER_OTLP_{name}",
        ):
            if text := self.environ.get(variable, "").strip():
                return variable, text
        return None

    def file(self, name: str) -> str | None:
        """The file that a variable names.

        Raises:
            SettingError: it is not there.
        """
        found = self.find(name)
        if found is None:
            return None
        variable, path = found
        if "\0" in path or not Path(path).is_file():
            raise SettingError(variable, f"there is no file {path!r}")
        return path

    def insecure(self) -> bool | None:
        """Whether plaintext is asked for, or refused; None if nothing says.

        Raises:
            SettingError: it says neither yes nor no.
        """
        found = self.find("INSECURE")
        if found is None:
            return None
        variable, text = found
        try:
            return truth(text)
        except ValueError:
            raise SettingError(variable, f"{text!r} is neither true nor false") from None

    def timeout(self) -> float:
        """Seconds that an export may take; 10 unless said otherwise.

        Raises:
            SettingError: it is no such number.
        """
        found = self.find("TIMEOUT")
        if found is None:
            return 10.0
        variable, text = found
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < 3600:
            raise SettingError(variable, f"{text!r} is no number of seconds above 0")
        return seconds

    def compression(self, protocol: Protocol) -> Compression:
        """How requests are compressed.

        Raises:
            SettingError: the protocol does not know it.
        """
        found = self.find("COMPRESSION")
        if found is None:
            return "none"
        variable, text = found
        word = text.lower()
        if word not in {"none", "gzip", "deflate"} or (word == "deflate" and protocol == "grpc"):
            raise SettingError(variable, f"{text!r} cannot be used: use gzip or none")
        return cast("Compression", word)

    def headers(self, config: Config, protocol: Protocol) -> dict[str, str]:
        """The headers of every request, names in lower case; the settings win over the variables.

        Raises:
            SettingError: one of them cannot be sent. Values are never shown: they may be secrets.
        """
        if config.headers is not None:
            setting, pairs = config.named("headers"), dict(config.headers)
        elif found := self.find("HEADERS"):
            setting, text = found
            pairs = _pairs(setting, text)
        else:
            return {}
        legal = _GRPC_NAME if protocol == "grpc" else _HTTP_NAME
        headers = {name.lower(): value for name, value in pairs.items()}
        for name, value in headers.items():
            if not legal.fullmatch(name):
                raise SettingError(setting, f"{name!r} is no name of a header")
            if not _VALUE.fullmatch(value):
                raise SettingError(setting, f"the value of {name!r} is not plain ASCII in one line")
        return headers


def _pairs(setting: str, text: str) -> dict[str, str]:
    pairs = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if not equals:
            raise SettingError(setting, "a header is not name=value; separate several by commas")
        pairs[unquote(name).strip()] = unquote(value).strip()
    return pairs
