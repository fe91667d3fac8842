"""Which frameworks are watched: those that are asked for, what they need, and what is always here."""

import sys
import types

import pytest

import rlotel
from rlotel.integrations import KNOWN, chosen


def test_automatically_all_are_watched_since_nothing_is_imported_for_it() -> None:
    assert set(chosen("auto")) == set(KNOWN)


def test_a_framework_brings_what_it_needs_and_threads_always_come() -> None:
    assert set(chosen(("verl",), strict=False)) == {"threads", "ray", "verl"}
    assert set(chosen((), strict=False)) == {"threads"}


def test_a_framework_that_is_asked_for_and_missing_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RLOTEL_FRAMEWORKS", "nemo_rl")
    with pytest.raises(rlotel.SettingError, match="the package nemo_rl is not installed here"):
        rlotel.instrument()


def test_a_framework_that_is_a_stub_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", types.ModuleType("stable_baselines3"))
    assert set(chosen(("stable_baselines3",))) == {"threads", "stable_baselines3"}
