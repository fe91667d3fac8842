"""What the histogram buckets promise."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

from rlotel.semconv import Metric, metrics

HISTOGRAMS = [metric for metric in metrics.ALL if metric.instrument == "histogram"]
SECONDS = [metric for metric in HISTOGRAMS if metric.unit == "s"]


@pytest.mark.parametrize("metric", HISTOGRAMS, ids=str)
def test_bounds_rise_and_google_takes_as_many(metric: Metric) -> None:
    assert len(metric.buckets) <= 200
    assert all(low < high for low, high in itertools.pairwise(metric.buckets))


@pytest.mark.parametrize("metric", SECONDS, ids=str)
def test_seconds_go_from_the_promised_bound_to_four_hours(metric: Metric) -> None:
    fine = {"rl.reward.duration", "rl.step.duration", "rlotel.gpu.poll.duration"}
    assert (metric.buckets[0], metric.buckets[-1]) == (0.001 if metric.name in fine else 0.05, 14400.0)


@pytest.mark.parametrize("metric", SECONDS, ids=str)
def test_no_ordinary_duration_ends_in_the_open_bucket(metric: Metric) -> None:
    reader = InMemoryMetricReader()
    view = View(instrument_name=metric.name, aggregation=ExplicitBucketHistogramAggregation(list(metric.buckets)))
    histogram = MeterProvider([reader], views=[view]).get_meter("test").create_histogram(metric.name, metric.unit)
    for seconds in (0.2, 150, 395, 3600):
        histogram.record(seconds)
    data = reader.get_metrics_data()
    assert data is not None
    point = data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points[0]
    assert isinstance(point, HistogramDataPoint)
    assert point.bucket_counts[-1] == 0
    assert sorted(point.bucket_counts)[-5:] == [0, 1, 1, 1, 1]


def quantile(buckets: tuple[float, ...], values: list[float], q: float) -> float:
    """What Prometheus's histogram_quantile makes of them: linear within the bucket the rank falls in."""
    rank, below, low = q * len(values), 0, 0.0
    for high in buckets:
        here = sum(low < value <= high for value in values)
        if here and below + here >= rank:
            return low + (high - low) * (rank - below) / here
        below, low = below + here, high
    raise AssertionError("a value lies above the last bound")


@pytest.mark.parametrize("metric", [metrics.STEP_DURATION, metrics.LOOP_DURATION], ids=str)
@given(data=st.data())
def test_a_quantile_is_off_by_a_quarter_at_most(metric: Metric, data: st.DataObject) -> None:
    first, last = metric.buckets[0], metric.buckets[-1]
    values = data.draw(st.lists(st.floats(first, last, exclude_min=True), min_size=1, max_size=30))
    q = data.draw(st.floats(0.01, 1))
    exact = sorted(values)[math.ceil(q * len(values)) - 1]
    assert quantile(metric.buckets, values, q) == pytest.approx(exact, rel=0.25)
