"""The version of rlotel, as `pyproject.toml` reads it."""

__version__ = "0.1.0"
