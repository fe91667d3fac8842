"""What follows from a loop as a whole, at its end: rates, idle share, ratios and MFU.

A ratio is recorded only if both its parts were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlotel.instruments import Instruments
from rlotel.phases import Loop
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.words import IDLE, MEMORY_BYTES, MODEL_PHASES, SAMPLE, TRAIN


@dataclass(frozen=True)
class Hardware:
    """The GPUs of a run; what is unknown is None."""

    gpus: int | None = None
    peak_flops: float | None = None
    """Dense FLOP/s of one GPU at most."""
    gpus_of: Mapping[str, int] = field(default_factory=dict)
    """The GPUs of a phase that not all of them take part in."""
    peak_bandwidth: float | None = None
    """Bytes/s that one GPU can read from its memory at most."""


def record(loop: Loop, seconds: float, hardware: Hardware, instruments: Instruments) -> None:
    """Record what a finished loop of `seconds` wall time implies."""
    for name, share in loop.shares.seconds.items():
        instruments.add(m.PHASE_TIME, share, {attr.PHASE_NAME.name: name})
    if seconds > 0:
        instruments.set(m.LOOP_IDLE_RATIO, min(loop.shares.seconds[IDLE] / seconds, 1.0))
        if loop.error is None:  # one that broke off has counted what a whole one does in a part of its time
            _rates(loop, seconds, hardware.gpus, instruments)
    _ratios(loop, instruments)
    if hardware.gpus and hardware.peak_flops:
        _mfu(loop, seconds, hardware, hardware.gpus * hardware.peak_flops, instruments)
    if hardware.gpus and hardware.peak_bandwidth:
        _mbu(loop, hardware.gpus_of.get(SAMPLE, hardware.gpus) * hardware.peak_bandwidth, instruments)


def _rates(loop: Loop, seconds: float, gpus: int | None, instruments: Instruments) -> None:
    counts = loop.counts
    tokens = [counts[f"{SAMPLE}.{kind}"] for kind in _TOKENS if f"{SAMPLE}.{kind}" in counts]
    if tokens:
        instruments.set(m.TOKENS_RATE, sum(tokens) / seconds)
        if gpus:
            instruments.set(m.TOKENS_RATE_PER_GPU, sum(tokens) / seconds / gpus)
    samples = counts.get(f"{SAMPLE}.samples")
    if samples is not None:
        instruments.set(m.SAMPLES_RATE, samples / seconds)
        if gpus:
            instruments.set(m.SAMPLES_RATE_PER_GPU, samples / seconds / gpus)


_TOKENS = ("tokens", "prompt_tokens", "completion_tokens")


def _ratios(loop: Loop, instruments: Instruments) -> None:
    counts = loop.counts
    samples = counts.get(f"{SAMPLE}.samples")
    if samples:
        for what, metric in (("truncated", m.SAMPLE_TRUNCATED_RATIO), ("aborted", m.SAMPLE_ABORTED_RATIO)):
            if (part := counts.get(f"{SAMPLE}.{what}")) is not None:
                instruments.set(metric, part / samples)
    steps, step_seconds = counts.get(f"{SAMPLE}.steps"), counts.get(f"{SAMPLE}.step_seconds")
    if steps and step_seconds is not None:
        instruments.record(m.STEP_DURATION, step_seconds / steps)


def _mfu(loop: Loop, seconds: float, hardware: Hardware, peak: float, instruments: Instruments) -> None:
    """MFU = model FLOPs / (time × GPUs × peak FLOP/s); `peak` is that of all GPUs together."""
    for phase, metric in ((TRAIN, m.TRAIN_MFU), (SAMPLE, m.SAMPLE_MFU)):
        flops, busy = loop.counts.get(f"{phase}.flops"), loop.seconds(phase)
        if flops is not None and busy:
            gpus = hardware.gpus_of.get(phase)
            capacity = busy * (peak if gpus is None else gpus * (hardware.peak_flops or 0.0))
            instruments.set(metric, flops / capacity)
            instruments.add(m.PHASE_FLOPS_CAPACITY, capacity, {attr.PHASE_NAME.name: phase})
    # A wait counts: what was waited for was computed as well, somewhere.
    computing = loop.seen() & MODEL_PHASES
    known = [loop.counts.get(f"{phase}.flops") for phase in computing]
    if computing and seconds > 0 and None not in known:
        flops = sum(filter(None, known))
        instruments.add(m.LOOP_FLOPS, flops)
        instruments.add(m.LOOP_FLOPS_CAPACITY, seconds * peak)
        instruments.set(m.LOOP_MFU, flops / (seconds * peak))


def _mbu(loop: Loop, peak: float, instruments: Instruments) -> None:
    """MBU = bytes that decoding must read / (time × GPUs × peak bytes/s); `peak` is that of all GPUs together."""
    read, busy = loop.counts.get(f"{SAMPLE}.{MEMORY_BYTES}"), loop.seconds(SAMPLE)
    if read is not None and busy:
        instruments.set(m.SAMPLE_MBU, read / (busy * peak))
