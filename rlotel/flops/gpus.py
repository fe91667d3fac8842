"""Peak dense rates and memory bandwidths of GPUs, as data.

The rates are the makers' figures without sparsity and, where a card has two, with FP32 accumulation: what
training runs. Where only a sparse figure or disagreeing ones are published, the value is absent. Sources,
by letter at the end of a row:

- D  the maker's datasheet or product page (a figure marked "with sparsity" halved)
- E  stas00/ml-engineering, compute/accelerator, which links the datasheets
- T  the tables of torchtitan, verl and prime-rl, where they quote datasheets and agree
- S  checked against SMs × FMA per SM and clock × 2 × boost clock
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dtype = Literal["tf32", "fp16", "bf16", "fp8", "fp4"]


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU; an absent rate is one the card lacks or nobody publishes dense."""

    name: str
    bf16: float | None = None
    """10¹² FLOP/s, as all rates."""
    fp16: float | None = None
    tf32: float | None = None
    fp8: float | None = None
    fp4: float | None = None
    bandwidth: float | None = None
    """10¹² bytes/s of the GPU's own memory."""

    def flops(self, dtype: Dtype) -> float | None:
        """Peak dense FLOP/s in `dtype`, None where unknown."""
        rate: float | None = getattr(self, dtype)
        return None if rate is None else rate * 1e12


def _with_bf16(name: str, rate: float, tf32: float | None, bandwidth: float | None, **more: float) -> Gpu:
    """A card with bfloat16, which has run at the rate of float16 since Ampere."""
    return Gpu(name, rate, rate, tf32, bandwidth=bandwidth, **more)


_V100_SXM = Gpu("V100 SXM2", fp16=125, bandwidth=0.9)  # D T S; no bfloat16
_V100_PCIE = Gpu("V100 PCIe", fp16=112, bandwidth=0.9)  # D T S; no bfloat16
_T4 = Gpu("T4", fp16=65, bandwidth=0.32)  # D S; no bfloat16
_A10 = _with_bf16("A10", 125, 62.5, 0.6)  # D T S
_A10G = _with_bf16("A10G", 70, 35, 0.6)  # D S: AWS's card, half the A10's tensor rate for the same memory
_A30 = _with_bf16("A30", 165, 82, 0.933)  # D S
_A40 = _with_bf16("A40", 149.7, 74.8, 0.696)  # D T
_A100 = _with_bf16("A100", 312, 156, None)  # D E S; the memory depends on the card
_A100_40 = _with_bf16("A100 40GB", 312, 156, 1.555)  # D E S
_A100_SXM_80 = _with_bf16("A100 SXM 80GB", 312, 156, 2.039)  # D E S
_A100_PCIE_80 = _with_bf16("A100 PCIe 80GB", 312, 156, 1.935)  # D E S
_L4 = _with_bf16("L4", 121, 60, 0.3, fp8=242.5)  # D S; 242 in bf16 is the sparse figure
_L20 = _with_bf16("L20", 119.5, None, 0.864)  # T
_L40 = _with_bf16("L40", 181.05, 90.5, 0.864, fp8=362)  # D E
_L40S = _with_bf16("L40S", 362.05, 183, 0.864, fp8=733)  # D E T
_H100_SXM = _with_bf16("H100 SXM", 989.4, 494.7, 3.35, fp8=1979)  # D E T S
_H100_PCIE = _with_bf16("H100 PCIe", 756, 378, 2.0, fp8=1513)  # D E T
_H100_NVL = _with_bf16("H100 NVL", 835, 417, 3.9, fp8=1671)  # D T
_H200 = _with_bf16("H200 SXM", 989.4, 494.7, 4.8, fp8=1979)  # D E
_H200_NVL = _with_bf16("H200 NVL", 835, 417, 4.8, fp8=1671)  # D, prime-rl
_H800 = _with_bf16("H800 SXM", 989.4, 494.7, 3.35, fp8=1979)  # verl: the H100 with slower links
_H20 = _with_bf16("H20", 148, 74, 4.0, fp8=296)  # T
_H20_3E = _with_bf16("H20-3e", 148, 74, None, fp8=296)  # as the H20, with faster memory
_GH200_96 = _with_bf16("GH200 96GB HBM3", 989.4, 494.7, 4.0, fp8=1979)  # D E; named for its 480 GB on the CPU
_GH200_144 = _with_bf16("GH200 144GB HBM3e", 989.4, 494.7, 4.9, fp8=1979)  # D E
_B200 = _with_bf16("B200", 2250, 1125, 8.0, fp8=4500, fp4=9000)  # D E
_B300 = _with_bf16("B300", 2250, 1125, 8.0, fp8=4500)  # D E; 12 600 to 14 000 are published for dense FP4
_GB200 = _with_bf16("GB200", 2500, 1250, 8.0, fp8=5000, fp4=10000)  # D E, one of a superchip's two
_GB300 = _with_bf16("GB300", 2500, 1250, 8.0, fp8=5000, fp4=15000)  # D E, one of a superchip's two
_GB10 = Gpu("GB10", bandwidth=0.273)  # D; one sparse FP4 figure and about 100 by hearsay for bf16
_PRO_6000_SERVER = _with_bf16("RTX PRO 6000 Server", 480, None, 1.597, fp8=960, fp4=1920)  # D S
_PRO_6000_STATION = _with_bf16("RTX PRO 6000 Workstation", 503.8, None, 1.792, fp8=1007.6)  # S
_RTX_4090 = _with_bf16("RTX 4090", 165.2, 82.6, 1.008, fp8=330.3)  # D S; twice that accumulates in FP16
_RTX_5090 = _with_bf16("RTX 5090", 209.5, 104.8, 1.792, fp8=419, fp4=1676)  # D S; as above
_MI300X = _with_bf16("MI300X", 1307.4, 653.7, 5.3, fp8=2614.9)  # D E
_MI325X = _with_bf16("MI325X", 1307.4, 653.7, 6.0, fp8=2614.9)  # D E
_MI355X = _with_bf16("MI355X", 2500, None, 8.0, fp8=5000)  # D E T

# What must be in a device's name, in words: `find_gpu` says how. The names are those NVML reports, as kept
# in vLLM's tuning files and in other projects' bug reports.
NAMES: dict[str, Gpu] = {
    "V100 SXM2": _V100_SXM,
    "V100 PCIE": _V100_PCIE,
    "T4": _T4,
    "A10": _A10,
    "A10G": _A10G,
    "A30": _A30,
    "A40": _A40,
    "A100": _A100,
    "A100 SXM4 40GB": _A100_40,
    "A100 PCIE 40GB": _A100_40,
    "A100 SXM4 80GB": _A100_SXM_80,
    "A800 SXM4 80GB": _A100_SXM_80,
    "A100 80GB PCIe": _A100_PCIE_80,
    "A100 PCIE 80GB": _A100_PCIE_80,
    "L4": _L4,
    "L20": _L20,
    "L40": _L40,
    "L40S": _L40S,
    "H100": _H100_SXM,
    "H100 80GB HBM3": _H100_SXM,
    "H100 PCIe": _H100_PCIE,
    "H100 NVL": _H100_NVL,
    "H200": _H200,
    "H200 NVL": _H200_NVL,
    "H800": _H800,
    "H20": _H20,
    "H20 3e": _H20_3E,
    "GH200 480GB": _GH200_96,
    "GH200 144G HBM3e": _GH200_144,
    "B200": _B200,
    "B300": _B300,
    "B300 SXM6 AC": _B300,
    "GB200": _GB200,
    "GB300": _GB300,
    "GB10": _GB10,
    "RTX PRO 6000 Blackwell Server Edition": _PRO_6000_SERVER,
    "RTX PRO 6000 Blackwell Workstation Edition": _PRO_6000_STATION,
    "RTX 4090": _RTX_4090,
    "RTX 5090": _RTX_5090,
    "MI300X": _MI300X,
    "MI325X": _MI325X,
    "MI355X": _MI355X,
}
