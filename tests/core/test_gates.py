"""The gates before OpenTelemetry: any key and any value, and never a lost batch."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import rlotel
import rlotel.semconv.metrics
from rlotel import gates
from rlotel.testing import Telemetry, captured


class Device:
    def __init__(self, **where: str) -> None:
        vars(self).update(where)


class Tensor:
    """A scalar tensor, as PyTorch, JAX, CuPy or TensorFlow have it."""

    ndim = 0

    def __init__(self, device: object, value: float | None = None) -> None:
        self.device = device
        self.value = value

    def __float__(self) -> float:
        assert self.value is not None, "a tensor on a device was read"
        return self.value

    __int__ = __float__
    __bool__ = __float__
    __str__ = __float__  # type: ignore[assignment]
    __repr__ = object.__repr__


class Hostile:
    """Everything it is asked raises."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def _raise(self, *_: object) -> Any:
        raise RuntimeError

    __str__ = __float__ = __int__ = __bool__ = __len__ = __index__ = _raise
    __eq__ = _raise
    __hash__ = _raise
    __repr__ = object.__repr__


numbers = [
    (1, 1.0),
    (0.5, 0.5),
    (2**62, float(2**62)),
    (2**63, float(2**63)),
    (2**70, float(2**70)),
    (Decimal("0.25"), 0.25),
    (Fraction(1, 4), 0.25),
    (np.float32(0.5), 0.5),
    (np.float16(0.5), 0.5),
    (np.int64(7), 7.0),
    (np.uint8(7), 7.0),
    (np.array(3.0), 3.0),
    (np.array(3), 3.0),
    (Tensor("cpu", 1.5), 1.5),
    (Tensor(Device(type="cpu"), 1.5), 1.5),
    (Tensor(Device(platform="cpu"), 1.5), 1.5),
    (Tensor("/job:localhost/replica:0/task:0/device:CPU:0", 1.5), 1.5),
]
refused = [
    (True, "bool"),
    (np.bool_(True), "bool"),
    (np.array(True), "bool"),
    ("0.3", "text"),
    (b"1", "text"),
    (np.str_("1"), "text"),
    (10**400, "overflow"),
    ([1.0], "not_a_number"),
    ({}, "not_a_number"),
    (1j, "not_a_number"),
    (np.complex64(1j), "not_a_number"),
    (object(), "not_a_number"),
    (Hostile(), "not_a_number"),
    (np.array([1.0, 2.0]), "array"),
    (np.array([1.0]), "array"),
    (np.datetime64("2020-01-01"), "not_a_number"),
    (Decimal("sNaN"), "not_a_number"),
    (Tensor(Device(type="cuda")), "device_tensor"),
    (Tensor(Device(type="meta")), "device_tensor"),
    (Tensor(Device(platform="gpu")), "device_tensor"),
    (Tensor(Device(id="0")), "device_tensor"),
    (Tensor("/job:localhost/replica:0/task:0/device:GPU:0"), "device_tensor"),
    (Tensor("gpu"), "device_tensor"),
    (Tensor(lambda: "gpu"), "device_tensor"),
]


@pytest.mark.parametrize(("value", "expected"), numbers, ids=lambda value: type(value).__name__)
def test_a_number_of_any_kind_is_a_float(telemetry: Telemetry, value: Any, expected: float) -> None:
    with rlotel.loop() as loop:
        loop.set(entropy=value)
    (point,) = telemetry.points("rl.entropy")
    assert (type(point.value), point.value) == (float, expected)
    assert refusals(telemetry) == {}


@pytest.mark.parametrize(
    "index", range(len(refused)), ids=[f"{type(value).__name__} {reason}" for value, reason in refused]
)
def test_what_is_no_number_is_refused_and_counted(telemetry: Telemetry, index: int) -> None:
    value, reason = refused[index]
    with rlotel.loop() as loop, rlotel.train(batch_size=value) as train:
        loop.set(entropy=value, grad_norm=0.1)
        train.add(steps=value, tokens=5)
    assert telemetry.points("rl.entropy") == []
    assert (telemetry.value("rl.grad_norm"), telemetry.value("rl.train.tokens")) == (0.1, 5)
    assert "rl.train.batch_size" not in telemetry.spans("rl.train")[0].attributes
    assert refusals(telemetry) == {reason: 3}


def test_none_is_left_out_without_a_word(telemetry: Telemetry) -> None:
    with rlotel.loop() as loop, rlotel.train(batch_size=None) as train:
        loop.set(entropy=None)
        loop.score("math", None)
        train.add(steps=None)
        train.loss(policy=None)
    assert refusals(telemetry) == {}
    assert telemetry.points("rl.evaluation.score") == telemetry.points("rl.train.loss") == []


def test_counts_are_never_negative_nor_infinite(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.train() as train:
        for steps in (5, -1, math.nan, math.inf, -math.inf):
            train.add(steps=steps)
    assert telemetry.value("rl.train.steps") == 5
    assert refusals(telemetry) == {"negative": 2, "not_a_number": 2}


def test_text_among_numbers_is_said_once(telemetry: Telemetry, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(1000):
        with rlotel.loop() as loop:
            loop.set(learning_rate="cosine", grad_norm=0.3)  # type: ignore[arg-type]
    assert telemetry.value("rl.grad_norm") == 0.3
    assert refusals(telemetry) == {"text": 1000}
    assert len([record for record in caplog.records if "rl.learning_rate" in record.message]) == 1


def test_text_is_made_legal() -> None:
    assert gates.text("ok") == "ok"
    assert gates.text("a\ud800b") == "a?b"
    assert gates.text(7) == "7"
    assert len(gates.text("x" * 5000)) == gates.LONGEST_TEXT
    with pytest.raises(gates.Refused):
        gates.text(Hostile())


def test_names_without_text_do_not_cost_the_phase(telemetry: Telemetry) -> None:
    with rlotel.loop():
        with rlotel.phase(Hostile()):  # type: ignore[arg-type]
            telemetry.clock.advance(1)
        with rlotel.reward(sandbox=Hostile()):  # type: ignore[call-overload]
            telemetry.clock.advance(2)
    assert telemetry.value("rl.phase.duration", **{"rl.phase.name": "_OTHER"}) == 1
    (reward,) = telemetry.points("rl.reward.duration")
    assert (reward.sum, "rl.reward.sandbox" in reward.attributes) == (2, False)
    assert refusals(telemetry) == {"text": 2}


def refusals(telemetry: Telemetry) -> dict[str, float]:
    return {
        str(point.attributes["rlotel.refusal.reason"]): point.value
        for point in telemetry.points("rlotel.values.refused")
        if point.value
    }


texts = st.text(st.characters(exclude_categories=()), max_size=40)
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(2**62, 2**66),
    st.floats(),
    texts,
    st.binary(max_size=5),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=2),
    st.integers(0, len(numbers) - 1).map(lambda index: numbers[index][0]),
    st.integers(0, len(refused) - 1).map(lambda index: refused[index][0]),  # some cannot be hashed
)
keys = st.one_of(texts, anything)


@settings(max_examples=80)
@given(st.data())
def test_any_key_and_any_value_neither_raise_nor_lose_a_batch(data: st.DataObject) -> None:
    def key() -> Any:
        return data.draw(keys)

    def value() -> Any:
        return data.draw(anything)

    with captured() as telemetry:
        recorder = telemetry.session.recorder
        recorder.identify(model=key(), environment=key())
        with rlotel.loop(iteration=value()) as loop:
            loop.set(
                reward=value(), entropy=value(), clip_ratio=value(), kl_divergence=value(), kl_reference=key()
            )
            loop.score(key(), value())
            loop.loss(**{data.draw(texts): value()})
            with rlotel.sample(batch_size=value(), role=key()) as sample:
                sample.add(samples=value(), tokens=value(), truncated=value(), flops=value())
            with rlotel.phase(key(), role=key()) as phase:
                phase.add(flops=value())
            with rlotel.sync(source=key(), destination=key()) as sync:
                sync.add(bytes=value())
            with rlotel.checkpoint(key(), tier=key(), step=value(), bytes=value(), blocking=value()):
                pass
            loop.set(grad_norm=0.25)
        telemetry.session.flush(0)
        metrics = telemetry._reader.get_metrics_data()
        assert metrics is not None
        assert encode_metrics(metrics).SerializeToString()
        assert encode_spans(telemetry._spans.get_finished_spans()).SerializeToString()
        assert telemetry.value("rl.grad_norm") == 0.25
        assert len(telemetry.spans()) == 5
        known = rlotel.semconv.metrics.BY_NAME
        assert {point.name for point in telemetry.points()} <= known.keys()
