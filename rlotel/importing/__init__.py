"""Runs that are over: what their loggers wrote is replayed as telemetry, with the times it had."""
