"""Settings: where they come from, and what is said of a wrong one."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlotel
from rlotel.config import SETTINGS, Config, resolve, sdk_disabled, truth
from rlotel.errors import SettingError
from rlotel.testing import captured

NAMES = sorted(setting.name for setting in SETTINGS)
VARIABLES = sorted(variable.name for setting in SETTINGS for variable in setting.metadata["variables"])


def test_an_argument_wins_over_a_variable_and_a_variable_over_the_default() -> None:
    environ = {"RLOTEL_RUN_ID": "variable", "RLOTEL_GPUS": "8", "OTEL_METRIC_EXPORT_INTERVAL": "30000"}
    config = resolve({"run_id": "argument", "model": None}, environ)
    assert (config.run_id, config.gpus, config.export_interval, config.model) == ("argument", 8, 30.0, None)
    assert config.sources == {
        "run_id": "argument",
        "gpus": "RLOTEL_GPUS",
        "export_interval": "OTEL_METRIC_EXPORT_INTERVAL",
    }
    assert resolve({}, {"RLOTEL_EXPORT_INTERVAL": "20", **environ}).export_interval == 20


def test_an_empty_variable_is_unset() -> None:
    assert resolve({}, dict.fromkeys(VARIABLES, "  ")) == Config()


def test_a_run_is_named_by_nemo_rl_too() -> None:
    assert resolve({}, {"NEMO_RL_OTEL_RUN_ID": "theirs"}).run_id == "theirs"
    assert resolve({}, {"NEMO_RL_OTEL_RUN_ID": "theirs", "RLOTEL_RUN_ID": "ours"}).run_id == "ours"


@pytest.mark.parametrize(
    ("environ", "run_id"),
    [
        ({"JOBSET_NAME": "set-1"}, "set-1"),
        ({"SLURM_JOB_ID": "77"}, "77"),
        ({"SLURM_JOB_ID": "77", "RLOTEL_RUN_ID": "mine"}, "mine"),
    ],
)
def test_without_a_name_the_run_has_that_of_its_job(environ: dict[str, str], run_id: str) -> None:
    with captured(environ, run_id=None) as telemetry:
        assert telemetry.session.run_id == run_id


def test_without_a_job_it_is_random() -> None:
    ids = set()
    for _ in range(2):
        with captured(run_id=None) as telemetry:
            ids.add(telemetry.session.run_id)
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("gpus", 0),
        ("gpus", 2.5),
        ("gpus", True),
        ("gpus", float("inf")),
        ("gpus", "many"),
        ("peak_flops", -1),
        ("peak_flops", float("nan")),
        ("peak_flops", 10**400),
        ("export_interval", 0),
        ("protocol", "http/json"),
        ("headers", 5),
        ("headers", {"a": b"1"}),
        ("frameworks", ["nonesuch"]),
        ("frameworks", 5),
        ("run_id", b"bytes"),
        ("run_id", True),
        ("enabled", "perhaps"),
    ],
)
def test_a_wrong_argument_is_an_error_that_names_it(setting: str, value: Any) -> None:
    with pytest.raises(SettingError, match=rf"^{setting}: ") as raised, captured(**{setting: value}):
        pass
    assert raised.value.setting == setting


def test_a_wrong_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(
        SettingError, match=r"^RLOTEL_GPUS: 'all' cannot be used: use a whole number of 1 or more$"
    ):
        resolve({}, {"RLOTEL_GPUS": "all"})
    with pytest.raises(SettingError, match=r"^RLOTEL_PEAK_FLOPS: 'H100' cannot be used: use a number above 0$"):
        resolve({}, {"RLOTEL_PEAK_FLOPS": "H100"})
    with pytest.raises(
        SettingError, match=r"^OTEL_METRIC_EXPORT_INTERVAL: '-1' cannot be used: use a number above 0"
    ):
        resolve({}, {"OTEL_METRIC_EXPORT_INTERVAL": "-1"})


def test_a_wrong_header_is_not_shown() -> None:
    with pytest.raises(SettingError, match=r"^RLOTEL_HEADERS: its value cannot be used") as raised:
        resolve({}, {"RLOTEL_HEADERS": "Bearer s3cret"})
    assert "s3cret" not in str(raised.value)


def test_a_framework_that_is_asked_for_must_be_known() -> None:
    with pytest.raises(SettingError, match=r"no integration named 'vrl'; there are .*threads"):
        rlotel.instrument(frameworks=["threads", "vrl"])


def test_one_provider_without_the_other_is_an_error() -> None:
    with pytest.raises(SettingError, match=r"^meter_provider: "):
        rlotel.instrument(tracer_provider=object())  # type: ignore[arg-type]


def test_headers_are_pairs() -> None:
    expected = {"authorization": "Bearer a=b", "x": ""}
    assert resolve({}, {"RLOTEL_HEADERS": "authorization=Bearer a=b, x=,"}).headers == expected
    assert resolve({}, {"RLOTEL_HEADERS": "authorization=Bearer%20a=b,x="}).headers == expected
    assert resolve({"headers": expected}, {}).headers == expected


@given(
    st.sampled_from(NAMES),
    st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.binary(), st.lists(st.text())),
)
def test_any_argument_is_taken_or_named(name: str, value: object) -> None:
    try:
        config = resolve({name: value}, {})
    except SettingError as error:
        assert str(error).startswith(f"{name}: ")  # noqa: PT017 - most values are fine
    else:
        assert config.sources == {name: "argument"}
        assert dataclasses.replace(config, sources={}, **{name: getattr(Config(), name)}) == Config()


@given(st.sampled_from(VARIABLES), st.text())
def test_any_variable_is_taken_or_named(name: str, value: str) -> None:
    try:
        config = resolve({}, {name: value})
    except SettingError as error:
        assert str(error).startswith(f"{name}: ")  # noqa: PT017 - most values are fine
    else:
        assert set(config.sources.values()) <= {name}


@pytest.mark.parametrize("word", ["1", "true", "TRUE", " yes ", "on", True])
def test_yes_is_written_in_many_ways(word: str | bool) -> None:
    assert truth(word)


@pytest.mark.parametrize("word", ["0", "false", "No", "off", False])
def test_no_is_written_in_many_ways(word: str | bool) -> None:
    assert not truth(word)


@pytest.mark.parametrize(
    ("value", "disabled"), [("true", True), ("1", True), ("false", False), ("", False), ("what", False)]
)
def test_only_a_clear_yes_turns_opentelemetry_off(value: str, disabled: bool) -> None:
    assert sdk_disabled({"OTEL_SDK_DISABLED": value}) is disabled
    assert not sdk_disabled({})
