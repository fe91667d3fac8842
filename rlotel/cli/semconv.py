"""`rlotel semconv`: looks names up in the semantic model, and judges captured telemetry by it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

import click

from rlotel.semconv.types import Signal

if TYPE_CHECKING:
    from rich.table import Table

    from rlotel.conformance import Violation
    from rlotel.semconv.types import Attribute, Metric, Span, Use

_UNBOUNDED = 10_000


@click.group()
def semconv() -> None:
    """Look names up in the semantic model, or check telemetry against it."""


@semconv.command(name="list")
@click.option("--signal", type=click.Choice(get_args(Signal)), help="Only the metrics of one golden signal.")
@click.option("--json", "as_json", is_flag=True, help="Print the metrics as JSON.")
def list_metrics(signal: str | None, as_json: bool) -> None:
    """List the metrics of the model, by golden signal."""
    from rlotel.semconv import metrics

    chosen = [metric for metric in metrics.ALL if signal in (None, metric.signal)]
    if as_json:
        click.echo(json.dumps([_metric(metric) for metric in chosen], indent=2))
        return
    for name in get_args(Signal):
        rows = [metric for metric in chosen if metric.signal == name]
        if rows:
            table = _table(name, "metric", "kind", "unit", "meaning")
            for metric in rows:
                table.add_row(metric.name, metric.instrument, metric.unit, metric.brief)
            _print(table)


@semconv.command(short_help="Show what the model says about one name.")
@click.argument("name")
def show(name: str) -> None:
    """Show all that the model says about a metric, an attribute or a span."""
    from rlotel.conformance import nearest
    from rlotel.semconv import attributes, metrics, spans

    # A name may be both: rl.train.steps is a counter, and an attribute of the span.
    metric, span, attribute = (module.BY_NAME.get(name) for module in (metrics, spans, attributes))
    if metric is not None:
        _show_metric(metric)
    if span is not None:
        _show_span(span)
    if attribute is not None:
        _show_attribute(attribute)
    if metric is None and span is None and attribute is None:
        known = [item.name for module in (metrics, spans, attributes) for item in module.ALL]
        near = nearest(name, dict.fromkeys(known)) or [one for one in dict.fromkeys(known) if name in one][:3]
        hint = f"did you mean {', '.join(near)}?" if near else "`rlotel semconv list` lists what there is."
        raise click.UsageError(f"{name} is no metric, attribute or span of the model; {hint}")


@semconv.command()
@click.argument(
    "captures",
    metavar="CAPTURE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@click.option("--json", "as_json", is_flag=True, help="Print the violations as JSON.")
def check(captures: tuple[str, ...], as_json: bool) -> None:
    """Check captured telemetry, whoever emitted it; - is standard input.

    A capture is OTLP JSON, one export request a line, as rlotel and the Collector's file exporter write it. Exits
    with 1 if something breaks the model, or if there is nothing in it for the model to judge.
    """
    from rlotel.conformance import judge

    found: list[tuple[str, Violation]] = []
    judged = seen = 0
    for capture in captures:
        with click.open_file(capture, encoding="utf-8", errors="replace") as lines:
            verdict = judge(lines)
        found += [(capture, violation) for violation in verdict.violations]
        judged += verdict.judged
        seen += verdict.seen
    if as_json:
        click.echo(json.dumps([{"capture": name, **asdict(violation)} for name, violation in found], indent=2))
    elif found:
        table = _table(None, "where", "what", "name", "how", "times")
        for name, violation in found:
            what = violation.kind.replace("_", " ")
            table.add_row(f"{name}:{violation.line}", what, violation.name, violation.detail, str(violation.count))
        _print(table)
    elif judged:
        click.echo(f"Nothing breaks the model: {judged:,} points and spans were judged.")
    if not found and not judged:
        what = f"none of {seen:,} points and spans is of the model" if seen else "no points and no spans"
        raise click.ClickException(f"there is nothing to judge: {what}")
    if found:
        raise click.exceptions.Exit(1)


def _show_metric(metric: Metric) -> None:
    facts = {
        "instrument": metric.instrument + (", starts at 0" if metric.starts_at_zero else ""),
        "unit": metric.unit or "none",
        "signal": metric.signal,
        "reported by": metric.owner,
        "origin": metric.origin,
        "stability": metric.stability,
    }
    from rlotel.semconv import attributes

    facts["identity"] = ", ".join(attribute.name for attribute in attributes.IDENTITY)
    if metric.buckets:
        facts["buckets"] = f"{len(metric.buckets)}, {metric.buckets[0]:g} to {metric.buckets[-1]:.15g}"
    _show("metric", metric, facts, metric.attributes)


def _show_span(span: Span) -> None:
    facts = {"kind": "internal", "origin": span.origin, "stability": span.stability}
    _show("span", span, facts, span.attributes)


def _show_attribute(attribute: Attribute) -> None:
    from rlotel.semconv import attributes, metrics, spans

    facts = {"type": attribute.type, "stability": attribute.stability}
    if attribute.members:
        facts["values"] = ", ".join(attribute.members) + ("" if attribute.closed else ", …")
    elif attribute.examples:
        facts["values"] = "such as " + ", ".join(map(str, attribute.examples))
    users: list[Metric | Span] = [*metrics.ALL, *spans.ALL]
    used = [item.name for item in users if any(use.attribute is attribute for use in item.attributes)]
    facts["used by"] = "every metric" if attribute in attributes.IDENTITY else ", ".join(dict.fromkeys(used))
    _show("attribute", attribute, facts, ())


def _show(what: str, item: Attribute | Metric | Span, facts: dict[str, str], uses: tuple[Use, ...]) -> None:
    click.echo(f"{item.name} ({what})")
    click.echo(item.brief)
    facts = facts | {use.attribute.name: use.requirement.replace("_", " ") for use in uses}
    width = max(len(fact) for fact in facts) + 2
    click.echo("".join(f"  {fact:<{width}}{text}\n" for fact, text in facts.items()))


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "instrument": metric.instrument,
        "unit": metric.unit,
        "brief": metric.brief,
        "signal": metric.signal,
        "origin": metric.origin,
        "stability": metric.stability,
        "owner": metric.owner,
        "attributes": {use.attribute.name: use.requirement for use in metric.attributes},
        "buckets": metric.buckets,
        "zeros": metric.zeros,
    }


def _table(title: str | None, *columns: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        # A name that is broken over two lines can be neither searched for nor copied.
        table.add_column(column, no_wrap=column in {"metric", "name", "unit"}, overflow="fold")
    return table


def _print(table: Table) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        # What is piped is for `grep` and `cut`: an entry is one line.
        console.width = console.measure(table, options=console.options.update(max_width=_UNBOUNDED)).maximum
    console.print(table)
    click.echo()
