"""The semantic model as Python objects, generated from the YAML in `semconv/`."""

from rlotel.semconv import attributes, metrics, spans
from rlotel.semconv.types import Attribute, Metric, Span, Use

__all__ = ["Attribute", "Metric", "Span", "Use", "attributes", "metrics", "spans"]
