"""Check rlotel on a real NVIDIA GPU: values against nvidia-smi, what calls cost, and MFU against the hardware.

    python examples/gpu_check.py [--seconds 10] [--size 8192]

Exits with 1 if something is wrong, with 0 if all is well or there is no GPU to check on. PyTorch is needed for the
load; without it the load and MFU are left out.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from typing import Any

from rlotel import flops
from rlotel.collectors.nvml import CallFailed, Nvml
from rlotel.collectors.sampling import Sample, Sampler
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric

ASKED = {
    "memory.total": (m.HW_GPU_MEMORY_LIMIT, 2**20, 0.01),
    "memory.used": (m.HW_GPU_MEMORY_USAGE, 2**20, 0.10),
    "power.draw": (m.HW_POWER, 1.0, 0.25),
    "enforced.power.limit": (m.GPU_POWER_LIMIT, 1.0, 0.01),
    "temperature.gpu": (m.HW_TEMPERATURE, 1.0, 0.10),
    "clocks.sm": (m.GPU_CLOCK_FREQUENCY, 1e6, 0.25),
}
"""What nvidia-smi calls a value: our metric, one of its units in ours, and by which share they may differ."""


class Timed(Nvml):
    """The library, with the time that each call takes."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: defaultdict[str, list[float]] = defaultdict(list)

    def call(self, name: str, *args: object, **kwargs: object) -> Any:
        began = time.perf_counter()
        try:
            return super().call(name, *args, **kwargs)
        finally:
            self.taken[name].append(time.perf_counter() - began)


def value(sample: Sample, metric: Metric, uuid: str, **labels: str) -> float | None:
    for found, given in sample.points.get(metric, []):
        of_it = uuid in (given["hw.id"], given.get("hw.parent"))
        if of_it and all(given.get(name.replace("__", ".")) == text for name, text in labels.items()):
            return found
    return None


def compare(sample: Sample) -> list[str]:
    """What nvidia-smi says otherwise."""
    fields = ["uuid", "name", *ASKED]
    query = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        out = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"nvidia-smi cannot be asked ({error}): values are not compared")
        return []
    wrong = []
    for row in csv.DictReader(out.splitlines(), fieldnames=fields, skipinitialspace=True):
        uuid = row["uuid"]
        name = row["name"]
        print(f"{uuid} {name}: peak {flops.peak_flops(name)}, bandwidth {flops.peak_bandwidth(name)}")
        for field, (metric, unit, share) in ASKED.items():
            labels = {"rl__gpu__clock": "sm"} if field == "clocks.sm" else {}
            if field == "temperature.gpu":
                labels = {"hw__sensor_location": "gpu"}
            ours, theirs = value(sample, metric, uuid, **labels), number(row[field])
            theirs = None if theirs is None else theirs * unit
            print(f"  {field}: rlotel {ours}, nvidia-smi {theirs}")
            if (ours is None) != (theirs is None) or (
                ours is not None
                and theirs is not None
                and abs(ours - theirs) > share * max(abs(theirs), 30 * unit)
            ):
                wrong.append(f"{field} of {uuid}: rlotel {ours}, nvidia-smi {theirs}")
    return wrong


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def load(size: int, seconds: float) -> float:
    """Multiply bf16 matrices on GPU 0 for that long; the FLOP/s that were done."""
    import torch

    left, right = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        left @ right
    torch.cuda.synchronize()
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(20):
            left @ right
        torch.cuda.synchronize()
        done += 20
    return 2.0 * size**3 * done / (time.perf_counter() - began)


def under_load(sampler: Sampler, size: int, seconds: float) -> list[str]:
    """MFU of a matrix multiplication, which the hardware's own word has to be near."""
    rates: list[float] = []
    thread = threading.Thread(target=lambda: rates.append(load(size, seconds)))
    thread.start()
    samples = []
    while thread.is_alive():
        time.sleep(1)
        samples.append(sampler.read())
    import torch

    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    device = next((one for one in sampler.gpus if one.uuid == uuid), sampler.gpus[0])
    peak = flops.peak_flops(device.model)
    inner = samples[2:-2] or samples
    hardware = [found for one in inner if (found := value(one, m.GPU_OFU, device.uuid)) is not None]
    energy = [found for one in inner if (found := value(one, m.HW_ENERGY, device.uuid)) is not None]
    power = [found for one in inner if (found := value(one, m.HW_POWER, device.uuid)) is not None]
    print(f"under load: {rates[0] / 1e12:.1f} TFLOP/s on {device.model}, power {statistics.mean(power):.0f} W")
    if len(energy) > 1:
        drawn = (energy[-1] - energy[0]) / (inner[-1].at - inner[0].at)
        print(f"  energy's slope {drawn:.0f} W")
    if peak is None:
        return [f"no peak is known for {device.model}"]
    mfu = rates[0] / peak
    print(
        f"  MFU {mfu:.1%}; by the hardware {statistics.mean(hardware):.1%}"
        if hardware
        else f"  MFU {mfu:.1%}; no GPM"
    )
    wrong = [] if 0.2 < mfu < 0.95 else [f"MFU of a matrix multiplication is {mfu:.1%}"]
    if hardware and abs(mfu - statistics.mean(hardware)) > 0.10:
        wrong.append(f"MFU {mfu:.1%} is far from the hardware's {statistics.mean(hardware):.1%}")
    return wrong


def costs(nvml: Timed, samples: list[Sample]) -> None:
    taken_by_all = statistics.median(one.seconds for one in samples)
    print(f"a reading takes {1e3 * taken_by_all:.2f} ms; by call, median and most:")
    for name, taken in sorted(nvml.taken.items(), key=lambda item: -statistics.median(item[1])):
        print(f"  {name} {1e6 * statistics.median(taken):.0f} µs, {1e6 * max(taken):.0f} µs ({len(taken)} calls)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the load runs")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns of the matrices")
    options = parser.parse_args()
    nvml, failures = Timed(), set[str]()
    sampler = Sampler(nvml, time.monotonic, failures.add)
    try:
        sampler.open()
    except (CallFailed, ModuleNotFoundError) as error:
        print(f"skipped, there is no GPU to check on: {error}")
        return 0
    samples = []
    for _ in range(5):
        samples.append(sampler.read())
        time.sleep(0.5)
    wrong = compare(samples[-1])
    costs(nvml, samples)
    found = samples[-1].points
    print(
        f"{sum(map(len, found.values()))} values of {len(sampler.gpus)} GPUs: {', '.join(sorted(map(str, found)))}"
    )
    if importlib.util.find_spec("torch") is not None:
        wrong += under_load(sampler, options.size, options.seconds)
    else:
        print("PyTorch is not installed: no load, no MFU")
    wrong += [f"could not be read: {error_type}" for error_type in sorted(failures)]
    for line in wrong:
        print(f"WRONG: {line}")
    sampler.close()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
