"""Counting on a GPU waits for nothing: shown with tensors that refuse to be read too early."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlotel.integrations.episodes import Episodes


class Copy:
    """A number that is on its way from a GPU."""

    def __init__(self, value: int, gpu: "Gpu") -> None:
        self.value, self.gpu = value, gpu

    def __int__(self) -> int:
        assert self.gpu.reached >= self.gpu.queued, "read before it was there"
        return self.value


class Gpu:
    """A queue of work: what is queued is done when the trainer waits for it."""

    def __init__(self) -> None:
        self.queued = self.reached = 0


class OnGpu:
    """A tensor there."""

    is_cuda, is_cpu, device = True, False, "cuda:0"

    def __init__(self, value: int, gpu: Gpu) -> None:
        self.value, self.gpu = value, gpu
        gpu.queued += 1

    def count_nonzero(self) -> "OnGpu":
        return OnGpu(self.value, self.gpu)

    def __add__(self, other: "OnGpu") -> "OnGpu":
        return OnGpu(self.value + other.value, self.gpu)

    def __int__(self) -> int:
        raise AssertionError("reading it waits for the GPU")

    def to(self, device: str, *, non_blocking: bool) -> Copy:
        assert (device, non_blocking) == ("cpu", True)
        self.gpu.queued += 1
        return Copy(self.value, self.gpu)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()

    class Event:
        def record(self, stream: object) -> None:
            self.at = made.queued

        def query(self) -> bool:
            return made.reached >= self.at

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    return made


def test_a_sum_is_read_once_the_trainer_has_waited_for_the_gpu(gpu: Gpu) -> None:
    episodes = Episodes()
    for ended in (2, 0, 3):
        episodes.add(OnGpu(ended, gpu))
    episodes.send()
    assert episodes.arrived() is None
    gpu.reached = gpu.queued  # the trainer reads its losses
    assert episodes.arrived() == 5
    assert episodes.arrived() is None


def test_a_sum_that_comes_late_is_counted_later(gpu: Gpu) -> None:
    episodes = Episodes()
    episodes.add(OnGpu(4, gpu))
    episodes.send()
    assert episodes.arrived() is None
    episodes.add(OnGpu(1, gpu))
    episodes.send()
    gpu.reached = gpu.queued
    assert episodes.arrived() == 5


def test_on_another_device_it_is_unknown() -> None:
    episodes = Episodes()
    episodes.add(torch.zeros(3, device="meta"))
    episodes.send()
    assert episodes.arrived() is None


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=5), max_size=20), st.sampled_from([bool, int, float]))
def test_every_episode_is_counted_once(steps: list[list[bool]], kind: type) -> None:
    episodes, found = Episodes(), 0
    for index, flags in enumerate(steps):
        numbers: Any = [kind(flag) for flag in flags]
        episodes.add(torch.tensor(numbers))
        if index % 3 == 2:
            episodes.send()
            found += episodes.arrived() or 0
    episodes.send()
    assert found + (episodes.arrived() or 0) == sum(map(sum, steps))
