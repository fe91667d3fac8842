"""Model FLOPs, GPU peaks and MFU: plain arithmetic, without OpenTelemetry, torch or a GPU.

architecture = read_config("Qwen3-8B/config.json")
flops = train_flops(architecture, [8192, 512]).total
mfu(flops, seconds=1.3, gpus=8, peak_flops=peak_flops("NVIDIA H100 80GB HBM3")).value
"""

from rlotel.flops.architecture import Architecture, AttentionCore, Linear, UnknownArchitecture
from rlotel.flops.gpus import Dtype, Gpu
from rlotel.flops.huggingface import read_config
from rlotel.flops.lora import Lora
from rlotel.flops.memory import decode_bytes, kv_bytes_per_token, weight_bytes_per_step
from rlotel.flops.passes import (
    Convention,
    Flops,
    causal_pairs,
    decode_flops,
    forward_flops,
    generation_flops,
    prefill_flops,
    train_flops,
)
from rlotel.flops.peaks import find_gpu, peak_bandwidth, peak_flops
from rlotel.flops.utilization import Reason, Utilization, accept, capacity, mbu, mfu, utilization

__all__ = [
    "Architecture",
    "AttentionCore",
    "Convention",
    "Dtype",
    "Flops",
    "Gpu",
    "Linear",
    "Lora",
    "Reason",
    "UnknownArchitecture",
    "Utilization",
    "accept",
    "capacity",
    "causal_pairs",
    "decode_bytes",
    "decode_flops",
    "find_gpu",
    "forward_flops",
    "generation_flops",
    "kv_bytes_per_token",
    "mbu",
    "mfu",
    "peak_bandwidth",
    "peak_flops",
    "prefill_flops",
    "read_config",
    "train_flops",
    "utilization",
    "weight_bytes_per_step",
]
