"""`rlotel mfu`: explains the MFU of a training run term by term, from its model, its GPU and its speed."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from rlotel import flops

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Rate(click.FloatRange):
    """A finite number above 0."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not finite.", param, ctx)
        return number


@dataclass(frozen=True)
class _Explanation:
    """One speed of one model on one kind of GPU, and what follows."""

    architecture: flops.Architecture
    seq_len: int
    convention: flops.Convention
    tokens_per_second: float
    gpus: int
    device: str
    dtype: str
    peak_flops: float

    def forward(self, convention: flops.Convention) -> flops.Flops:
        """FLOP of one sequence, forward."""
        return flops.forward_flops(self.architecture, [self.seq_len], convention=convention)

    def flops_per_second(self, convention: flops.Convention) -> float:
        """Model FLOP/s of training at this speed."""
        return 3 * self.forward(convention).total / self.seq_len * self.tokens_per_second

    def mfu(self, convention: flops.Convention) -> flops.Utilization:
        """MFU of training at this speed."""
        return flops.mfu(self.flops_per_second(convention), 1, self.gpus, self.peak_flops)

    @property
    def other(self) -> flops.Convention:
        """The convention not asked for."""
        return "full" if self.convention == "causal" else "causal"


@click.command()
@click.option(
    "--model",
    required=True,
    type=click.Path(exists=True),
    help="A Hugging Face config.json, or the folder it lies in.",
)
@click.option("--gpu", help='Device name as nvidia-smi has it, e.g. "NVIDIA H100 80GB HBM3".')
@click.option("--seq-len", required=True, type=click.IntRange(min=1), help="Tokens of a sequence.")
@click.option(
    "--tokens-per-second",
    required=True,
    type=_Rate(),
    help="Tokens trained on a second (forward and backward), all GPUs together.",
)
@click.option("--gpus", default=1, show_default=True, type=click.IntRange(min=1), help="GPUs that share the work.")
@click.option(
    "--dtype",
    default="bf16",
    show_default=True,
    type=click.Choice(["bf16", "fp16", "tf32", "fp8", "fp4"]),
    help="What the matrices are multiplied in: it selects the peak.",
)
@click.option(
    "--convention",
    default="causal",
    show_default=True,
    type=click.Choice(["causal", "full"]),
    help="Attention as a causal mask leaves it, or all of it, as PaLM and torchtitan publish.",
)
@click.option(
    "--peak-flops",
    type=_Rate(),
    envvar="RLOTEL_PEAK_FLOPS",
    show_envvar=True,
    help="Peak dense FLOP/s of one GPU, in place of the table's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def mfu(
    model: str,
    gpu: str | None,
    seq_len: int,
    tokens_per_second: float,
    gpus: int,
    dtype: str,
    convention: flops.Convention,
    peak_flops: float | None,
    as_json: bool,
) -> None:
    """Explain the model FLOPs utilization of a training run.

    Exits with 1 where there is no MFU to give: an unknown model or GPU, or a value above 1.
    """
    device = "the given peak" if gpu is None or peak_flops is not None else gpu
    peak = _peak(gpu, dtype, peak_flops)
    try:
        architecture = flops.read_config(model)
    except (flops.UnknownArchitecture, OSError) as error:
        raise click.ClickException(str(error)) from error
    explanation = _Explanation(architecture, seq_len, convention, tokens_per_second, gpus, device, dtype, peak)
    if as_json:
        click.echo(json.dumps(_numbers(explanation), indent=2))
    else:
        _print(explanation)
    reason = explanation.mfu(convention).reason
    if reason is not None:
        raise click.ClickException(
            f"MFU refused ({reason.value.replace('_', ' ')}): is --tokens-per-second that of all --gpus, and is "
            "--seq-len right?"
        )


def _peak(gpu: str | None, dtype: str, override: float | None) -> float:
    if gpu is None and override is None:
        raise click.UsageError("give --gpu, or the peak itself with --peak-flops")
    peak = flops.peak_flops(gpu or "", dtype, override=override)
    if peak is None:
        raise click.ClickException(f"no dense {dtype} peak is known for {gpu!r}; give it with --peak-flops")
    return peak


def _numbers(explanation: _Explanation) -> dict[str, object]:
    forward = explanation.forward(explanation.convention)
    tokens = explanation.seq_len
    result = explanation.mfu(explanation.convention)
    return {
        "model_type": explanation.architecture.model_type,
        "parameters": explanation.architecture.parameters,
        "active_weights": explanation.architecture.active_weights,
        "language_tower_only": explanation.architecture.language_tower_only,
        "seq_len": tokens,
        "convention": explanation.convention,
        "forward_flops_per_token": {term: count / tokens for term, count in asdict(forward).items() if count},
        "train_flops_per_token": 3 * forward.total / tokens,
        "tokens_per_second": explanation.tokens_per_second,
        "flops_per_second": explanation.flops_per_second(explanation.convention),
        "gpu": explanation.device,
        "gpus": explanation.gpus,
        "dtype": explanation.dtype,
        "peak_flops": explanation.peak_flops,
        "mfu": result.value,
        "mfu_refused": None if result.reason is None else result.reason.value,
        f"mfu_{explanation.other}": explanation.mfu(explanation.other).value,
    }


def _print(explanation: _Explanation) -> None:
    console = Console(highlight=False, markup=False)
    architecture = explanation.architecture
    tower = ", language tower only" if architecture.language_tower_only else ""
    console.print(f"{architecture.model_type}: {architecture.parameters:,} parameters{tower}")
    console.print(f"{architecture.active_weights:,} of its weights multiply a token (LM head yes, embedding no)")
    table = Table(title=f"GFLOP per token, sequences of {explanation.seq_len:,}", title_justify="left")
    table.add_column("term")
    table.add_column("how")
    table.add_column("GFLOP", justify="right")
    for term, how, count in _terms(explanation):
        table.add_row(term, how, f"{count / 1e9:,.3f}")
    console.print(table)
    peak = f"{explanation.gpus:,} × {explanation.peak_flops / 1e12:,.1f} TFLOP/s ({explanation.dtype}, dense)"
    console.print(
        f"speed  {explanation.tokens_per_second:,.0f} tokens/s = "
        f"{explanation.flops_per_second(explanation.convention) / 1e12:,.1f} TFLOP/s"
    )
    console.print(f"peak   {peak}, {explanation.device}")
    console.print(f"MFU    {_percent(explanation, explanation.convention)}, attention {explanation.convention}")
    console.print(f"       {_percent(explanation, explanation.other)} if attention is counted {explanation.other}")


def _terms(explanation: _Explanation) -> Iterator[tuple[str, str, float]]:
    architecture, tokens = explanation.architecture, explanation.seq_len
    forward = explanation.forward(explanation.convention)
    pairs = "s² pairs" if explanation.convention == "full" else "causal pairs, windows kept"
    how = {
        "attention_projections": f"2 × {architecture.weights_of('attention_projections'):,} weights",
        "attention_core": f"2 × heads × (d_qk + d_v) × {pairs}",
        "mlp": f"2 × {architecture.weights_of('mlp'):,} weights",
        "router": f"2 × {architecture.weights_of('router'):,} weights",
        "lm_head": f"2 × {architecture.weights_of('lm_head'):,} weights",
    }
    for term, count in asdict(forward).items():
        if count:
            yield term.replace("_", " "), how[term], count / tokens
    yield "forward", "sum", forward.total / tokens
    yield "train", "3 × forward", 3 * forward.total / tokens


def _percent(explanation: _Explanation, convention: flops.Convention) -> str:
    value = explanation.mfu(convention).value
    return "refused" if value is None else f"{value:.1%}"
