"""`python -m benchmarks [--markdown]`: measure, and print a table."""

from __future__ import annotations

import logging
import platform

import click
from opentelemetry.sdk.version import __version__ as sdk_version
from rich.console import Console
from rich.table import Table

from benchmarks.costs import rows
from benchmarks.measuring import Row

COLUMNS = ("What", "Takes", "Against", "Takes", "Ratio")


def spell(seconds: float) -> str:
    """Seconds in the unit that fits."""
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def cells(row: Row) -> tuple[str, ...]:
    """A row as text."""
    if row.baseline is None or row.ratio is None:
        return row.what, spell(row.seconds), "", "", ""
    return row.what, spell(row.seconds), row.against, spell(row.baseline), f"{row.ratio:.2f}×"


def markdown(measured: list[Row]) -> str:
    """The table for the README."""
    lines = [COLUMNS, ("---", "--:", "---", "--:", "--:"), *map(cells, measured)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@click.command()
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a Markdown table.")
def main(as_markdown: bool) -> None:
    """Measure what rlotel costs. Takes about a minute."""
    logging.disable(logging.WARNING)
    measured = rows()
    where = f"Python {platform.python_version()}, OpenTelemetry {sdk_version}; medians of one run"
    if as_markdown:
        click.echo(f"{markdown(measured)}\n\n{where}.")
        return
    table = Table(*COLUMNS, caption=where)
    for row in measured:
        table.add_row(*cells(row))
    Console().print(table)


if __name__ == "__main__":
    main()
