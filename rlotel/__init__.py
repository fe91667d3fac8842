"""rlotel: OpenTelemetry for reinforcement-learning training."""

__version__ = "0.1.0"
