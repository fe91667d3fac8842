"""The names and units that others published, and those that rlotel promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.sdk.metrics import Counter, MeterProvider, ObservableGauge, UpDownCounter
from opentelemetry.semconv._incubating.attributes import error_attributes, hw_attributes, network_attributes
from opentelemetry.semconv._incubating.metrics import hw_metrics

from rlotel.semconv import Attribute, Metric, Span, attributes, metrics, spans

PUBLISHED: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "published.yaml").read_text())
PROPOSAL = PUBLISHED["proposal"]


def required(metric: Metric) -> list[str]:
    return [use.attribute.name for use in metric.attributes if use.requirement == "required"]


def levels(item: Metric | Span) -> dict[str, str]:
    return {use.attribute.name: use.requirement for use in item.attributes}


def test_the_proposals_metrics_have_its_names_instruments_and_units() -> None:
    ours = {name: [metrics.BY_NAME[name].instrument, metrics.BY_NAME[name].unit] for name in PROPOSAL["metrics"]}
    assert ours == PROPOSAL["metrics"]
    assert {m.name for m in metrics.ALL if m.origin == "proposal"} == PROPOSAL["metrics"].keys()


def test_the_proposals_attributes_and_spans_are_all_here() -> None:
    assert {name: attributes.BY_NAME[name].type for name in PROPOSAL["attributes"]} == PROPOSAL["attributes"]
    for name, values in PROPOSAL["values"].items():
        assert set(values) <= set(attributes.BY_NAME[name].members)
    assert [span.name for span in spans.ALL if span.origin == "proposal"] == PROPOSAL["spans"]


def test_googles_dashboard_finds_every_metric_and_filter_it_asks_for() -> None:
    ours = {f"prometheus.googleapis.com/{metric.name}/{metric.instrument}" for metric in metrics.ALL}
    assert set(PUBLISHED["google_dashboard"]["metric_types"]) <= ours
    assert set(PUBLISHED["google_dashboard"]["filters"]) <= {attribute.name for attribute in attributes.IDENTITY}


def test_nemo_rls_gauges_are_unchanged() -> None:
    theirs = [metric for metric in metrics.ALL if metric.origin == "nemo_rl"]
    assert [metric.name for metric in theirs] == PUBLISHED["nemo_rl"]
    assert {(metric.instrument, metric.unit) for metric in theirs} == {("gauge", "")}


def test_what_rlotel_promises_beyond_is_here() -> None:
    ours = {
        name: [metric.instrument, metric.unit, required(metric)]
        for name in PUBLISHED["promised"]
        if (metric := metrics.BY_NAME.get(name))
    }
    assert ours == PUBLISHED["promised"]


def test_hardware_metrics_are_opentelemetrys() -> None:
    """Compared with its package; the oldest one that is promised knows fewer of them."""
    meter = MeterProvider().get_meter("test")
    kinds = {"counter": Counter, "updowncounter": UpDownCounter, "gauge": ObservableGauge}
    compared = []
    for metric in metrics.ALL:
        create = getattr(hw_metrics, "create_" + metric.name.replace(".", "_"), None)
        if metric.origin == "opentelemetry" and create is not None:
            theirs = create(meter, []) if metric.instrument == "gauge" else create(meter)
            compared.append((theirs.name, theirs.unit))
            assert (metric.name, metric.unit) == compared[-1]
            if not metric.name.startswith(("hw.power", "hw.status")):  # their kinds changed with the versions
                assert isinstance(theirs, kinds[metric.instrument])
    assert ("hw.energy", "J") in compared


@pytest.mark.parametrize(
    "attribute", [a for a in attributes.ALL if a.name.startswith(("hw.", "error.", "network."))], ids=str
)
def test_hardware_attributes_are_opentelemetrys(attribute: Attribute) -> None:
    constant = attribute.name.upper().replace(".", "_")
    newer = {"HW_GPU_TASK", "HW_MODEL", "HW_VENDOR", "HW_SERIAL_NUMBER", "HW_DRIVER_VERSION"}
    newer |= {"HW_SENSOR_LOCATION", "HW_LIMIT_TYPE"}
    modules = (hw_attributes, error_attributes, network_attributes)
    theirs = [getattr(module, constant) for module in modules if hasattr(module, constant)]
    assert theirs == [attribute.name] or (theirs == [] and constant in newer)


def test_every_point_and_resource_must_name_its_run_and_its_system() -> None:
    assert [a.name for a in attributes.REQUIRED_IDENTITY] == ["rl.run.id", "rl.system"]
    assert set(attributes.REQUIRED_IDENTITY) < set(attributes.IDENTITY)


def test_a_failed_phase_says_its_error_type() -> None:
    phases: list[Metric | Span] = list(spans.ALL)
    phases += [m for m in metrics.ALL if m.name.startswith("rl.") and m.name.endswith(".duration")]
    assert {levels(phase)["error.type"] for phase in phases} == {"conditionally_required"}


def test_attributes_of_the_phases() -> None:
    assert levels(metrics.SAMPLE_DURATION)["rl.sample.kind"] == "required"
    assert levels(metrics.REWARD_DURATION)["rl.reward.sandbox"] == "recommended"
    assert levels(metrics.TRAIN_DURATION)["rl.role"] == "conditionally_required"
    sync = levels(metrics.SYNC_DURATION)
    assert (sync["rl.sync.source"], sync["rl.sync.destination"]) == ("recommended", "recommended")
    assert attributes.SAMPLE_KIND.members == ("generate", "wait")
    assert attributes.RUN_STATE.members == ("running", "completed", "failed", "preempted", "cancelled")


def test_the_first_failure_and_the_first_nan_are_increases() -> None:
    assert metrics.PHASE_FAILURES.zeros == tuple(
        {"rl.phase.name": phase} for phase in ("loop", "sample", "reward", "train", "sync", "checkpoint")
    )
    kinds = {(zero["rl.value.name"], zero["rl.value.kind"]) for zero in metrics.TRAIN_NONFINITE.zeros}
    assert kinds == {(name, kind) for name in attributes.VALUE_NAME.members for kind in ("nan", "inf")}
    losses = {zero["rl.loss.type"] for zero in metrics.TRAIN_NONFINITE.zeros if "rl.loss.type" in zero}
    assert losses == set(attributes.LOSS_TYPE.members)


def test_enumerations_are_the_plain_words() -> None:
    assert attributes.SampleKind("wait") is attributes.SampleKind.WAIT
    assert f"{attributes.SampleKind.WAIT} {attributes.SampleKind.WAIT!s}" == "wait wait"
    assert [kind.value for kind in attributes.SampleKind] == list(attributes.SAMPLE_KIND.members)
