"""How a backend spells the names of the model: one table for all that is known.

Google's Telemetry API keeps dots and adds nothing. Prometheus and the Collector's exporters for it write
underscores and, unless told not to, the unit and `_total`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlotel.render.neighbours import Neighbour

if TYPE_CHECKING:
    from rlotel.semconv.types import Metric

# Of the translation that the Collector and Prometheus share; units of the model only.
_UNIT_WORDS = {"s": "seconds", "By": "bytes", "W": "watts", "J": "joules", "Cel": "celsius", "Hz": "hertz"}
_IDENTIFIER = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Spelling:
    """One way to write the names of metrics and labels in PromQL."""

    name: str
    meaning: str
    dots: bool
    suffixes: bool

    def metric(self, metric: Metric, part: str = "") -> str:
        """The name of a metric; `part` is `bucket`, `sum` or `count` of a histogram."""
        if isinstance(metric, Neighbour) and metric.resource is not None and not self.dots:
            # How Cloud Monitoring itself spells them without quotes.
            domain, _, rest = metric.name.partition("/")
            name = f"{domain.replace('.', '_')}:{rest.replace('/', '_')}"
        elif isinstance(metric, Neighbour) or self.dots:
            name = metric.name
        else:
            name = re.sub(r"[^a-zA-Z0-9_:]", "_", metric.name)
            if self.suffixes:
                name = _suffixed(name, metric)
        return f"{name}_{part}" if part else name

    def label(self, name: str) -> str:
        """The name of a label, quoted if PromQL wants that."""
        written = name if self.dots else re.sub(r"[^a-zA-Z0-9_]", "_", name)
        return written if _IDENTIFIER.fullmatch(written) else f'"{written}"'

    def selector(self, metric: Metric, matchers: list[str], part: str = "") -> str:
        """A metric with its matchers, as PromQL."""
        name = self.metric(metric, part)
        if _IDENTIFIER.fullmatch(name):
            return name + ("{" + ",".join(matchers) + "}" if matchers else "")
        return "{" + ",".join([f'"{name}"', *matchers]) + "}"


def _suffixed(name: str, metric: Metric) -> str:
    words = name.split("_")
    amount, _, per = metric.unit.partition("/")
    if amount in _UNIT_WORDS and _UNIT_WORDS[amount] not in words:
        words.append(_UNIT_WORDS[amount])
    if per == "s":
        words += ["per", "second"]
    if metric.unit == "1" and metric.instrument == "gauge" and "ratio" not in words:
        words.append("ratio")
    if metric.instrument == "counter":
        words = [word for word in words if word != "total"] + ["total"]
    return "_".join(words)


GOOGLE = Spelling(
    "google",
    "Google Cloud's Telemetry API and Managed OpenTelemetry; Prometheus 3 without translation",
    True,
    False,
)
PROMETHEUS = Spelling(
    "prometheus",
    "the Collector's exporters for Prometheus, googlemanagedprometheus among them; Prometheus' own OTLP receiver",
    False,
    True,
)
UNSUFFIXED = Spelling("prometheus-unsuffixed", "the same with add_metric_suffixes: false", False, False)

ALL = {spelling.name: spelling for spelling in (GOOGLE, PROMETHEUS, UNSUFFIXED)}
