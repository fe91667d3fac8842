"""A capture in a real Prometheus: translated into a backend's spelling, stored, and asked over its HTTP API."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rlotel.capture import Point
from rlotel.otlp_records import frozen
from rlotel.render.spelling import Spelling
from rlotel.semconv import metrics
from rlotel.semconv.types import Metric

SCRAPE_S = 60
NOW_S = 1_700_000_000
"""When the first point of a stored capture was sent."""


def tool(name: str) -> str:
    """The path of a program of Debian's package `prometheus`."""
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is not installed: apt-get install prometheus (`make system-packages`)"
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
    return path


def stretched(points: Iterable[Point], factor: float) -> list[Point]:
    """The same run, with everything taking so many times as long."""
    slow = []
    for point in points:
        seconds, per_second = point.unit == "s", point.unit.endswith("/s")
        scale = factor if seconds else 1 / factor if per_second else 1.0
        slow.append(
            replace(
                point,
                value=None if point.value is None else point.value * scale,
                sum=None if point.sum is None else point.sum * scale,
                bounds=tuple(bound * factor for bound in point.bounds) if seconds else point.bounds,
                time_ns=round(point.time_ns * factor),
            )
        )
    return slow


def open_metrics(points: Iterable[Point], spelling: Spelling, scrape_s: int = SCRAPE_S) -> str:
    """What Prometheus would have scraped of this, from a Collector that holds the last export of each process."""
    by_sender: dict[Any, list[Point]] = defaultdict(list)
    for point in points:
        by_sender[frozen(point.resource)].append(point)
    first = min(point.time_ns for sent in by_sender.values() for point in sent)
    filled = _filled(by_sender)
    lines: list[str] = []
    for sent in by_sender.values():
        exports: dict[int, list[Point]] = defaultdict(list)
        for point in sent:
            exports[point.time_ns].append(point)
        times = sorted(exports)
        for at in range(0, -((first - times[-1]) // 10**9) + scrape_s, scrape_s):
            known = [one for one in times if one - first <= at * 10**9]
            if known:
                lines += [
                    f"{line} {NOW_S + at}"
                    for point in exports[known[-1]]
                    for line in _samples(point, spelling, filled)
                ]
    return "\n".join([*lines, "# EOF", ""])


def _filled(by_sender: dict[Any, list[Point]]) -> dict[str, set[int]]:
    """The buckets of each histogram that ever count something, with the one below: quantiles need no others."""
    filled: dict[str, set[int]] = defaultdict(set)
    for point in (point for sent in by_sender.values() for point in sent if point.bucket_counts):
        for index, count in enumerate(point.bucket_counts):
            if count:
                filled[point.name] |= {index - 1, index}
        filled[point.name].add(len(point.bounds))
    return filled


def _samples(point: Point, spelling: Spelling, filled: dict[str, set[int]]) -> Iterator[str]:
    metric = metrics.BY_NAME[point.name]
    labels = {spelling.label(key).strip('"'): _text(value) for key, value in point.attributes.items()}
    labels |= {"job": str(point.resource["service.name"]), "instance": str(point.resource["service.instance.id"])}
    if point.kind != "histogram":
        yield f"{_series(metric, spelling, labels)} {point.value}"
        return
    total = 0
    for index, (bound, count) in enumerate(zip([*point.bounds, math.inf], point.bucket_counts, strict=True)):
        total += count
        if index not in filled[point.name]:
            continue
        text = "+Inf" if math.isinf(bound) else repr(float(bound))
        yield f"{_series(metric, spelling, {**labels, 'le': text}, 'bucket')} {total}"
    yield f"{_series(metric, spelling, labels, 'sum')} {point.sum}"
    yield f"{_series(metric, spelling, labels, 'count')} {point.count}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _series(metric: Metric, spelling: Spelling, labels: dict[str, str], part: str = "") -> str:
    return spelling.metric(metric, part) + "{" + ",".join(f"{k}={json.dumps(v)}" for k, v in labels.items()) + "}"


@dataclass(frozen=True)
class Store:
    """A Prometheus that holds one capture."""

    url: str
    start: int
    end: int

    def series(self, query: str, step: int = SCRAPE_S) -> list[dict[str, Any]]:
        """The series of a query over the whole time, each with at least one value that is a number."""
        parameters = {"query": query, "start": self.start, "end": self.end, "step": step}
        found: list[dict[str, Any]] = self._get("query_range", parameters)["data"]["result"]
        return [one for one in found if any(math.isfinite(float(value)) for _, value in one["values"])]

    def _get(self, what: str, parameters: dict[str, Any]) -> dict[str, Any]:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as reply:
                return dict(json.load(reply))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters['query']}: {error.read().decode()}") from error


@contextmanager
def stored(text: str, folder: Path) -> Iterator[Store]:
    """A Prometheus with what OpenMetrics text says."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.txt").write_text(text)
    (folder / "prometheus.yml").write_text("{}\n")
    times = [int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")]
    data = folder / "data"
    command = [
        tool("promtool"),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(folder / "metrics.txt"),
        str(data),
    ]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr + made.stdout
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "prometheus.log").open("w") as log:
        server = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={data}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _await_ready(url, server, folder / "prometheus.log")
        yield Store(url, min(times), max(times))
    finally:
        server.terminate()
        server.wait(30)


def _await_ready(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
