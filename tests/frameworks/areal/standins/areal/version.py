"""AReaL's version."""

from types import SimpleNamespace

version_info = SimpleNamespace(version="1.0.4")
