"""`rlotel demo`: trains a small policy with GRPO, and shows what rlotel reports of it."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from rlotel.demo.mishaps import Mishaps
from rlotel.demo.run import Options, run
from rlotel.demo.settings import Settings
from rlotel.demo.show import Lines, Screen, fits
from rlotel.demo.summary import print_summary, to_json

_POSITIVE = click.IntRange(min=1)


@click.command()
@click.option(
    "--iterations", type=_POSITIVE, default=Settings().iterations, show_default=True, help="How long to train."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same learning curve."
)
@click.option(
    "--endpoint", help="Send to this OTLP collector instead of the receiver built in; there is no view then."
)
@click.option("--protocol", type=click.Choice(["http/protobuf", "grpc"]), help="Of OTLP.")
@click.option(
    "--capture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for what was received, appended to; by default a new one in the temporary folder.",
)
@click.option(
    "--gpus", type=_POSITIVE, help="Pretend to have these, to see rates per GPU; with --peak-flops also MFU."
)
@click.option(
    "--peak-flops", type=click.FloatRange(min=0, min_open=True), help="Peak FLOP/s of one GPU, such as 1e11."
)
@click.option("--fail-at", type=_POSITIVE, metavar="N", help="Let the verifier fail in iteration N.")
@click.option("--nan-at", type=_POSITIVE, metavar="N", help="Let the loss of iteration N be not a number.")
@click.option("--stall-at", type=_POSITIVE, metavar="N", help="Let the verifier hang for 5 s in iteration N.")
@click.option("--restart", is_flag=True, help="Go back to the last checkpoint once.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document at the end, and progress to stderr."
)
def demo(
    iterations: int,
    seed: int,
    endpoint: str | None,
    protocol: str | None,
    capture: Path | None,
    gpus: int | None,
    peak_flops: float | None,
    fail_at: int | None,
    nan_at: int | None,
    stall_at: int | None,
    restart: bool,
    as_json: bool,
) -> None:
    """Train a small policy with GRPO on this CPU, and watch its telemetry live.

    The task is sums and differences of two digits. All that is shown was received over a real socket: the loop,
    rlotel/demo/loop.py, talks to nothing but rlotel's public calls.
    """
    if endpoint and capture:
        raise click.UsageError("--capture keeps what the receiver built in gets; with --endpoint it gets nothing")
    mishaps = Mishaps(fail_at, nan_at, stall_at)
    for name, at in vars(mishaps).items():
        if at is not None and at > iterations:
            raise click.BadParameter(
                f"there are only {iterations} iterations", param_hint=f"--{name.replace('_', '-')}"
            )
    options = Options(
        settings=Settings(iterations=iterations),
        seed=seed,
        endpoint=endpoint,
        protocol=protocol,
        capture=capture,
        gpus=gpus,
        peak_flops=peak_flops,
        mishaps=mishaps,
        restart=restart,
    )
    if restart and options.restart_after is None:
        raise click.BadParameter("too few --iterations to go back over; give 8 or more", param_hint="--restart")
    console = Console(highlight=False, markup=False)
    live = not as_json and endpoint is None and fits(console)
    try:
        outcome = run(options, Screen(console) if live else Lines(to_stderr=as_json))
    except BrokenPipeError:
        raise  # who reads the output has seen enough, as `head` has
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'the receiver'}: {error.strerror or error}") from error
    if as_json:
        click.echo(to_json(outcome))
    else:
        print_summary(outcome, console)
    if not outcome.iterations and not outcome.interrupted:
        raise click.ClickException("no iteration succeeded")
