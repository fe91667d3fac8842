"""A GPU's peak is found by its exact name, and any name that says more than is known has none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel import flops
from rlotel.flops.gpus import NAMES

Rates = dict[str, float]


def _ampere(bf16: float, tf32: float | None = None, **more: float) -> Rates:
    return {"bf16": bf16, "fp16": bf16, **({} if tf32 is None else {"tf32": tf32}), **more}


_V100_SXM: tuple[Rates, float] = ({"fp16": 125}, 0.9)
_A100 = _ampere(312, 156)
_H100 = _ampere(989.4, 494.7, fp8=1979)
_NVL = _ampere(835, 417, fp8=1671)
_H20 = _ampere(148, 74, fp8=296)

# Dense 10¹² FLOP/s by dtype, and 10¹² bytes/s.
DEVICES: dict[str, tuple[Rates, float | None]] = {
    "Tesla V100-SXM2-16GB": _V100_SXM,
    "Tesla V100-SXM2-32GB": _V100_SXM,
    "Tesla V100-PCIE-16GB": ({"fp16": 112.0}, 0.9),
    "Tesla T4": ({"fp16": 65.0}, 0.32),
    "NVIDIA A10": (_ampere(125, 62.5), 0.6),
    "NVIDIA A10G": (_ampere(70, 35), 0.6),
    "NVIDIA A30": (_ampere(165, 82), 0.933),
    "NVIDIA A40": (_ampere(149.7, 74.8), 0.696),
    "NVIDIA A100-SXM4-40GB": (_A100, 1.555),
    "NVIDIA A100-SXM4-80GB": (_A100, 2.039),
    "A100-SXM4-40GB": (_A100, 1.555),
    "NVIDIA A100-PCIE-40GB": (_A100, 1.555),
    "NVIDIA A100 80GB PCIe": (_A100, 1.935),
    "NVIDIA A800-SXM4-80GB": (_A100, 2.039),
    "NVIDIA L4": (_ampere(121, 60, fp8=242.5), 0.3),
    "NVIDIA L20": (_ampere(119.5), 0.864),
    "NVIDIA L40": (_ampere(181.05, 90.5, fp8=362), 0.864),
    "NVIDIA L40S": (_ampere(362.05, 183, fp8=733), 0.864),
    "NVIDIA H100 80GB HBM3": (_H100, 3.35),
    "NVIDIA H100": (_H100, 3.35),
    "NVIDIA H100 PCIe": (_ampere(756, 378, fp8=1513), 2.0),
    "NVIDIA H100 NVL": (_NVL, 3.9),
    "NVIDIA H200": (_H100, 4.8),
    "NVIDIA H200 NVL": (_NVL, 4.8),
    "NVIDIA H800": (_H100, 3.35),
    "NVIDIA H20": (_H20, 4.0),
    "NVIDIA H20-3e": (_H20, None),
    "NVIDIA GH200 480GB": (_H100, 4.0),
    "NVIDIA GH200 144G HBM3e": (_H100, 4.9),
    "NVIDIA B200": (_ampere(2250, 1125, fp8=4500, fp4=9000), 8.0),
    "NVIDIA B300 SXM6 AC": (_ampere(2250, 1125, fp8=4500), 8.0),
    "NVIDIA GB200": (_ampere(2500, 1250, fp8=5000, fp4=10000), 8.0),
    "NVIDIA GB300": (_ampere(2500, 1250, fp8=5000, fp4=15000), 8.0),
    "NVIDIA GB10": ({}, 0.273),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": (_ampere(480, fp8=960, fp4=1920), 1.597),
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": (_ampere(503.8, fp8=1007.6), 1.792),
    "NVIDIA GeForce RTX 4090": (_ampere(165.2, 82.6, fp8=330.3), 1.008),
    "NVIDIA GeForce RTX 5090": (_ampere(209.5, 104.8, fp8=419, fp4=1676), 1.792),
    "AMD Instinct MI300X": (_ampere(1307.4, 653.7, fp8=2614.9), 5.3),
    "AMD Instinct MI325X": (_ampere(1307.4, 653.7, fp8=2614.9), 6.0),
    "AMD Instinct MI355X": (_ampere(2500, fp8=5000), 8.0),
}


@pytest.mark.parametrize("device", DEVICES)
def test_every_known_device_has_its_dense_rates_and_bandwidth_and_no_others(device: str) -> None:
    rates, bandwidth = DEVICES[device]
    found = {dtype: flops.peak_flops(device, dtype) for dtype in ("tf32", "fp16", "bf16", "fp8", "fp4")}
    assert {dtype: peak / 1e12 for dtype, peak in found.items() if peak is not None} == pytest.approx(rates)
    assert flops.peak_bandwidth(device) == (None if bandwidth is None else pytest.approx(bandwidth * 1e12))


@pytest.mark.parametrize(
    "device",
    [
        "Foo 9000",
        "",
        "NVIDIA",
        "NVIDIA A100X",  # a card of its own, near the A100
        "NVIDIA H100 80GB HBM2e",
        "NVIDIA H800 PCIe",
        "NVIDIA GH200",  # of two memories
        "NVIDIA GB300 NVL",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "NVIDIA A10-24Q",  # a vGPU profile
        "GRID A100-4C",
        "NVIDIA A100-SXM4-40GB MIG",
        "AMD Instinct MI300X VF",
        "AMD Instinct MI300A",
    ],
)
def test_a_name_that_says_more_or_less_than_is_known_has_no_peak(device: str) -> None:
    assert (flops.find_gpu(device), flops.peak_flops(device), flops.peak_bandwidth(device)) == (None, None, None)


@pytest.mark.parametrize(
    ("device", "near_miss"),
    [
        ("NVIDIA H20", "NVIDIA H200"),
        ("NVIDIA L4", "NVIDIA L40"),
        ("NVIDIA L40", "NVIDIA L40S"),
        ("NVIDIA A10", "NVIDIA A100"),
        ("NVIDIA A10", "NVIDIA A10G"),
        ("NVIDIA B200", "NVIDIA GB200"),
        ("NVIDIA H100", "NVIDIA H100 PCIe"),
        ("NVIDIA H200", "NVIDIA H200 NVL"),
    ],
)
def test_near_misses_are_told_apart(device: str, near_miss: str) -> None:
    found, other = flops.find_gpu(device), flops.find_gpu(near_miss)
    assert found is not None
    assert other is not None
    assert found != other


@given(st.sampled_from(sorted(NAMES)), st.sampled_from([str.upper, str.lower, str.title]))
def test_case_and_separators_do_not_matter(name: str, recase: Callable[[str], str]) -> None:
    assert flops.find_gpu(f"NVIDIA_{recase(name)}".replace(" ", "_")) == NAMES[name]


@given(st.sampled_from(sorted(NAMES)), st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1))
def test_a_word_grown_by_a_letter_is_another_card(name: str, letters: str) -> None:
    grown = name + letters
    assert flops.find_gpu(grown) in (None, NAMES.get(grown.upper()), NAMES.get(grown))


@pytest.mark.parametrize("name", ["bfloat16", "torch.bfloat16", "BF16"])
def test_torchs_names_of_a_dtype_are_understood(name: str) -> None:
    assert flops.peak_flops("NVIDIA H100 PCIe", name) == 756e12


def test_an_unknown_dtype_has_no_peak() -> None:
    assert flops.peak_flops("NVIDIA H100 PCIe", "int3") is None


@pytest.mark.parametrize(
    ("slice_name", "share", "peak"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14 / 108, 312e12 * 14 / 108),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 60 / 132, 989.4e12 * 60 / 132),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", 1.0, 989.4e12),
        ("Foo 9000 MIG 1g.5gb", 0.5, None),
    ],
)
def test_a_mig_slice_has_its_share_of_the_parents_peak_and_none_without_it(
    slice_name: str, share: float, peak: float | None
) -> None:
    assert flops.peak_flops(slice_name, sm_share=share) == (None if peak is None else pytest.approx(peak))
    assert flops.peak_flops(slice_name) is None
    assert flops.peak_bandwidth(slice_name) is None


def test_a_share_does_not_scale_a_whole_gpu() -> None:
    assert flops.peak_flops("NVIDIA A100-SXM4-40GB", sm_share=0.5) == 312e12


def test_the_users_own_peak_wins() -> None:
    assert flops.peak_flops("NVIDIA H100 PCIe", override=5e14) == 5e14
    assert flops.peak_flops("Foo 9000", override=5e14) == 5e14
    assert flops.peak_bandwidth("Foo 9000", override=1e12) == 1e12


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf")])
def test_an_override_or_share_that_is_no_rate_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="a finite number above 0"):
        flops.peak_flops("NVIDIA H100", override=bad)
    with pytest.raises(ValueError, match="a finite number above 0"):
        flops.peak_bandwidth("NVIDIA H100", override=bad)
    with pytest.raises(ValueError, match="not a share above 0 and up to 1"):
        flops.peak_flops("NVIDIA H100 MIG 1g.10gb", sm_share=bad)
