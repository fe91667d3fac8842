"""From CUDA_VISIBLE_DEVICES and Ray's assignment to GPUs."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel.collectors.visible import GpuId, assigned, visible

H100 = "NVIDIA H100 80GB HBM3"
UUIDS = [f"GPU-{n}a4e0000-0000-4000-8000-00000000000{n}" for n in range(4)]
GPUS = tuple(GpuId(uuid, n, H100) for n, uuid in enumerate(UUIDS))

FIRST = GpuId("MIG-aaaa", 1, f"{H100} MIG 1g.10gb", parent=UUIDS[1], instances=(7, 0))
SECOND = GpuId("MIG-abbb", 1, f"{H100} MIG 1g.10gb", parent=UUIDS[1], instances=(8, 0))
CUT = (GPUS[0], GpuId(UUIDS[1], 1, H100, (FIRST, SECOND)), GPUS[2])


def seen(value: str | None, gpus: tuple[GpuId, ...] = GPUS, **environ: str) -> list[str] | None:
    if value is not None:
        environ["CUDA_VISIBLE_DEVICES"] = value
    found = visible(gpus, environ)
    return None if found is None else [gpu.uuid for gpu in found]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1", [1]),
        ("3,1", [3, 1]),
        (" 3 , 1 ", [3, 1]),
        ("0,1,8,2", [0, 1]),  # up to the first that is none
        ("0,-1,1", [0]),
        ("1,1", []),  # twice
        ("2,", [2]),
        (UUIDS[2], [2]),
        (f"{UUIDS[3]},{UUIDS[0]}", [3, 0]),
        ("GPU-2a4e", [2]),  # a beginning
        ("GPU-", []),  # of several
        ("GPU-2a4e,GPU-ffff,GPU-0a4e", [2]),
        ("GPU-2a4e,GPU-2", []),
        (f"0,{UUIDS[1]}", [0]),  # of one kind only
        (f"{UUIDS[1]},0", [1]),
    ],
)
def test_the_list_is_read_as_cuda_reads_it(value: str | None, expected: list[int]) -> None:
    assert seen(value) == [UUIDS[n] for n in expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [UUIDS[0], UUIDS[2]]),  # CUDA shows whole GPUs where it can
        ("MIG-aaaa", ["MIG-aaaa"]),
        ("MIG-ab", ["MIG-abbb"]),
        ("MIG-a", []),
        ("MIG-aaaa,MIG-abbb", ["MIG-aaaa"]),  # a process sees one slice at most
        (f"MIG-{UUIDS[1]}/8/0", ["MIG-abbb"]),  # the name of drivers before R470
        (f"MIG-{UUIDS[1]}/9/0", []),
        ("1", ["MIG-aaaa"]),
        (UUIDS[1], []),
        (UUIDS[0], [UUIDS[0]]),
    ],
)
def test_slices_are_found(value: str | None, expected: list[str]) -> None:
    assert seen(value, CUT) == expected


def test_a_gpu_that_cannot_be_read_does_not_shift_the_others() -> None:
    assert seen("3,2", (GPUS[0], GPUS[2], GPUS[3])) == [UUIDS[3], UUIDS[2]]
    assert seen("2,1,3", (GPUS[0], GPUS[2], GPUS[3])) == [UUIDS[2]]


def test_ordinals_of_different_gpus_are_unknown_unless_they_follow_the_bus() -> None:
    mixed = (GPUS[0], GpuId("GPU-x", 1, "NVIDIA L4"))
    assert seen("1", mixed) is None
    assert seen("1", mixed, CUDA_DEVICE_ORDER="PCI_BUS_ID") == ["GPU-x"]
    assert seen("GPU-x", mixed) == ["GPU-x"]


@given(st.text(alphabet="0123456789GPUMIG-a4e, /\n", max_size=60))
def test_no_list_upsets_us_and_none_has_a_gpu_twice(value: str) -> None:
    for gpus in (GPUS, CUT, ()):
        found = visible(gpus, {"CUDA_VISIBLE_DEVICES": value})
        assert found is not None
        assert len(found) == len(set(found))


def ray_that_assigned(monkeypatch: pytest.MonkeyPatch, ids: list[str] | None) -> None:
    """A process with Ray in it, as a worker with these GPUs, or as the driver, which has no assignment."""

    def accelerators() -> dict[str, list[str]]:
        if ids is None:
            raise AssertionError("only in a worker")
        return {"GPU": ids}

    ray = ModuleType("ray")
    ray.is_initialized = lambda: True  # type: ignore[attr-defined]
    ray.get_runtime_context = lambda: SimpleNamespace(  # type: ignore[attr-defined]
        get_accelerator_ids=accelerators
    )
    monkeypatch.setitem(sys.modules, "ray", ray)


NOT_SET = {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}


def test_rays_assignment_stands_where_ray_does_not_set_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    ray_that_assigned(monkeypatch, ["3", "1"])
    assert assigned(NOT_SET) == {"CUDA_VISIBLE_DEVICES": "3,1"}
    assert assigned({**NOT_SET, "CUDA_VISIBLE_DEVICES": "0,1,2,3"}) == {"CUDA_VISIBLE_DEVICES": "3,1"}


def test_a_worker_without_an_assignment_has_no_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ray_that_assigned(monkeypatch, [])
    assert assigned(NOT_SET) == {"CUDA_VISIBLE_DEVICES": ""}
    # Its launcher gave it some, as verl does with its servers.
    assert assigned({**NOT_SET, "CUDA_VISIBLE_DEVICES": "2"}) == {"CUDA_VISIBLE_DEVICES": "2"}


def test_a_driver_has_no_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    ray_that_assigned(monkeypatch, None)
    assert assigned(NOT_SET) == {}


def test_where_ray_sets_the_variable_it_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    ray_that_assigned(monkeypatch, ["3"])
    assert assigned({"CUDA_VISIBLE_DEVICES": "2", "PATH": "/"}) == {"CUDA_VISIBLE_DEVICES": "2"}
