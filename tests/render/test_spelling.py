"""The names in queries are the names that backends have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry
from prometheus_client.core import REGISTRY

from rlotel.render import neighbours, spelling
from rlotel.semconv import attributes, metrics
from rlotel.semconv.types import Metric

LABELS = {attributes.RUN_ID.name: "r", attributes.PHASE_NAME.name: "train"}


def _record(meter: Meter, metric: Metric) -> None:
    if metric.instrument == "histogram":
        meter.create_histogram(metric.name, unit=metric.unit).record(1.0, LABELS)
    elif metric.instrument == "counter":
        meter.create_counter(metric.name, unit=metric.unit).add(1.0, LABELS)
    elif metric.instrument == "gauge":
        meter.create_gauge(metric.name, unit=metric.unit).set(1.0, LABELS)
    else:
        meter.create_up_down_counter(metric.name, unit=metric.unit).add(1.0, LABELS)


@pytest.fixture
def scraped() -> Iterator[CollectorRegistry]:
    """What OpenTelemetry's exporter for Prometheus shows of one value of every metric of the model."""
    reader = PrometheusMetricReader(disable_target_info=True)
    provider = MeterProvider([reader], shutdown_on_exit=False)
    for metric in metrics.ALL:
        _record(provider.get_meter("test"), metric)
    yield REGISTRY
    provider.shutdown()


def test_the_prometheus_spelling_is_what_the_exporter_writes(scraped: CollectorRegistry) -> None:
    written = {sample.name for family in scraped.collect() for sample in family.samples}
    expected = set()
    for metric in metrics.ALL:
        name = spelling.PROMETHEUS.metric(metric)
        if metric.unit == "1" and metric.instrument == "gauge" and "ratio" not in metric.name:
            # The specification and the Collector say _ratio here; this one exporter does not.
            name = name.removesuffix("_ratio")
        parts = ("bucket", "sum", "count") if metric.instrument == "histogram" else ()
        expected |= {f"{name}_{part}" for part in parts} or {name}
    assert {name for name in written if name.startswith(("rl", "hw"))} == expected


def test_labels_are_spelled_as_the_exporter_writes_them(scraped: CollectorRegistry) -> None:
    samples = [
        one for family in scraped.collect() for one in family.samples if one.name == "rl_phase_failures_total"
    ]
    assert {spelling.PROMETHEUS.label(label) for label in LABELS} <= set(samples[0].labels)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rl.loop.duration", {"rl.loop.duration", "rl_loop_duration_seconds", "rl_loop_duration"}),
        ("rl.train.steps", {"rl.train.steps", "rl_train_steps_total", "rl_train_steps"}),
        ("rl.train.mfu", {"rl.train.mfu", "rl_train_mfu_ratio", "rl_train_mfu"}),
        ("rl.loop.idle.ratio", {"rl.loop.idle.ratio", "rl_loop_idle_ratio"}),
        ("rl.tokens.rate", {"rl.tokens.rate", "rl_tokens_rate_per_second", "rl_tokens_rate"}),
        ("rl.run.status", {"rl.run.status", "rl_run_status"}),
    ],
)
def test_a_metric_has_these_spellings(name: str, expected: set[str]) -> None:
    assert {one.metric(metrics.BY_NAME[name]) for one in spelling.ALL.values()} == expected


def test_dots_are_quoted_in_promql() -> None:
    metric = metrics.BY_NAME["rl.loop.duration"]
    matchers = [f'{spelling.GOOGLE.label("rl.run.id")}="r"']
    assert spelling.GOOGLE.selector(metric, matchers, "bucket") == '{"rl.loop.duration_bucket","rl.run.id"="r"}'


def test_a_neighbour_keeps_its_own_name() -> None:
    known = neighbours.by_name()
    names = {one.metric(known["DCGM_FI_DEV_GPU_UTIL"]) for one in spelling.ALL.values()}
    assert names == {"DCGM_FI_DEV_GPU_UTIL"}
    duty = known["kubernetes.io/container/accelerator/duty_cycle"]
    assert spelling.PROMETHEUS.metric(duty) == "kubernetes_io:container_accelerator_duty_cycle"
