"""`rlotel gpu`: shows the GPUs of this node as the collector reads them."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from rlotel.collectors import health
from rlotel.collectors.nvml import CallFailed, Nvml
from rlotel.collectors.sampling import Sample, Sampler
from rlotel.collectors.visible import GpuId, assigned, visible
from rlotel.instruments import Value
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric

WARM_UP = 0.25
"""Seconds between the two readings that rates and activity need."""

_COLUMNS = (
    "GPU",
    "model",
    "state",
    "busy",
    "SM",
    "tensor",
    "memory",
    "power",
    "temperature",
    "SM clock",
    "held back by",
    "seen by CUDA",
)


class Row(NamedTuple):
    """One GPU or slice, and what was read of it."""

    id: GpuId
    values: Mapping[tuple[Metric, frozenset[tuple[str, Value]]], float]

    def value(self, metric: Metric, **labels: str) -> float | None:
        """The value of a metric, with these attributes if it has several."""
        wanted = {name.replace("__", "."): value for name, value in labels.items()}.items()
        return next((value for (of, has), value in self.values.items() if of is metric and wanted <= has), None)

    @property
    def state(self) -> str | None:
        """Its state, None where unknown."""
        return next((s.value for s in health.STATES if self.value(m.HW_STATUS, hw__state=s.value) == 1), None)

    @property
    def reasons(self) -> list[str]:
        """What has held back its clock between the two readings."""
        return [
            reason.value
            for reason in attr.GpuThrottleReason
            if self.value(m.GPU_THROTTLE_TIME, rl__gpu__throttle__reason=reason.value)
        ]


@click.command()
@click.option("--watch", is_flag=True, help="Read again every second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print everything that was read, as JSON.")
def gpu(watch: bool, as_json: bool) -> None:
    """Show this node's GPUs as rlotel reads them.

    What a GPU or its driver cannot say is left empty. The last column is the order in which CUDA would show them
    to a program that is started here. Exits with 1 where there is no GPU to read.
    """
    if watch and as_json:
        raise click.UsageError("--watch is for the table; give --json alone")
    failures: set[str] = set()
    sampler = Sampler(Nvml(), time.monotonic, failures.add)
    try:
        sampler.open()
        sampler.read()
        time.sleep(WARM_UP)
        rows = _rows(sampler, sampler.read())
        if not rows:
            raise click.ClickException("the driver is here, but it shows no GPU to this process")
        if as_json:
            click.echo(json.dumps([_numbers(row) for row in rows], indent=2))
        elif watch:
            _watch(sampler, rows)
        else:
            console = Console(highlight=False)
            console.print(_table(sampler, rows))
            if failures:
                console.print(f"Could not be read this time, and so left empty: {', '.join(sorted(failures))}")
    except ModuleNotFoundError as error:
        raise click.ClickException(
            "`rlotel gpu` needs nvidia-ml-py, which is not installed: pip install 'rlotel[gpu]'"
        ) from error
    except CallFailed as failure:
        raise click.ClickException(
            f"no GPU can be read: {failure}. Is this a node with NVIDIA GPUs, and does `nvidia-smi` work here?"
        ) from failure
    finally:
        sampler.close()


def _rows(sampler: Sampler, sample: Sample) -> list[Row]:
    found: dict[object, dict[tuple[Metric, frozenset[tuple[str, Value]]], float]] = {}
    for metric, points in sample.points.items():
        for value, labels in points:
            found.setdefault(labels[attr.HW_NAME.name], {})[metric, frozenset(labels.items())] = value
    devices = [device for one in sampler.gpus for device in (one, *one.slices)]
    return [Row(device, found.get(device.name, {})) for device in devices]


def _watch(sampler: Sampler, rows: list[Row]) -> None:
    with Live(_table(sampler, rows), auto_refresh=False) as live, contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(1)
            live.update(_table(sampler, _rows(sampler, sampler.read())), refresh=True)


def _table(sampler: Sampler, rows: list[Row]) -> Table:
    shown = visible(sampler.gpus, assigned(os.environ))
    places = {device.uuid: str(place) for place, device in enumerate(shown or ())}
    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(
            column, justify="left" if column in {"GPU", "model", "state", "held back by"} else "right"
        )
    for row in rows:
        table.add_row(*_cells(row), places.get(row.id.uuid, "" if shown is not None else "?"))
    return table


def _cells(row: Row) -> list[str]:
    used, size = row.value(m.HW_GPU_MEMORY_USAGE), row.value(m.HW_GPU_MEMORY_LIMIT)
    power, limit = row.value(m.HW_POWER), row.value(m.GPU_POWER_LIMIT)
    clock = row.value(m.GPU_CLOCK_FREQUENCY, rl__gpu__clock=attr.GpuClock.SM.value)
    warm = row.value(m.HW_TEMPERATURE, hw__sensor_location="gpu")
    return [
        row.id.name,
        row.id.model,
        row.state or "",
        _share(row.value(m.HW_GPU_UTILIZATION)),
        _share(row.value(m.GPU_SM_UTILIZATION)),
        _share(row.value(m.GPU_TENSOR_UTILIZATION)),
        "" if used is None or size is None else f"{used / 2**30:.1f} / {size / 2**30:.1f} GiB",
        "" if power is None else f"{power:.0f}" + ("" if limit is None else f" / {limit:.0f}") + " W",
        "" if warm is None else f"{warm:.0f} °C",
        "" if clock is None else f"{clock / 1e6:.0f} MHz",
        ", ".join(row.reasons),
    ]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _numbers(row: Row) -> dict[str, Any]:
    """All points of a device; attributes that only say which device it is are left out."""
    metrics: dict[str, Any] = {}
    for (metric, labels), value in row.values.items():
        telling = {key: text for key, text in sorted(labels) if key not in _NAMING}
        entry = {"value": value, "unit": metric.unit, **({"attributes": telling} if telling else {})}
        metrics.setdefault(metric.name, []).append(entry)
    return {
        "name": row.id.name,
        "uuid": row.id.uuid,
        "parent": row.id.parent,
        "model": row.id.model,
        "state": row.state,
        "metrics": metrics,
    }


_NAMING = frozenset(
    use.name for use in (attr.HW_ID, attr.HW_NAME, attr.HW_MODEL, attr.HW_VENDOR, attr.HW_TYPE, attr.HW_PARENT)
)
