"""What a run reported beside what verl logged of it."""

from rlotel.capture import SpanNode
from rlotel.integrations.verl.tables import STEP, TIMERS
from rlotel.otlp_records import SpanRecord
from tests.frameworks.verl.conftest import Run


def seconds(span: SpanRecord) -> float:
    return (span.end_ns - span.start_ns) / 1e9


def loops(run: Run) -> list[SpanNode]:
    """The root of each iteration's trace, in order."""
    roots = [root for trace in run.capture.traces().values() for root in trace if root.span.name == "rl.loop"]
    return sorted(roots, key=lambda root: root.span.start_ns)


def own(root: SpanNode) -> list[SpanRecord]:
    """The phases of the trainer's own process in an iteration."""
    return [child.span for child in root.children if child.span.resource == root.span.resource]


def phase(span: SpanRecord) -> tuple[str, object]:
    """Which phase a span is of, and of which role."""
    name = span.attributes.get("rl.phase.name", span.name.removeprefix("rl."))
    return str(name), span.attributes.get("rl.role")


def differences(run: Run) -> dict[str, list[float]]:
    """By timer, how much longer our interval was in each iteration that verl timed it in."""
    found: dict[str, list[float]] = {}
    for root, data in zip(loops(run), run.trained, strict=True):
        ours: dict[tuple[str, object], float] = {}
        for span in own(root):
            ours[phase(span)] = ours.get(phase(span), 0.0) + seconds(span)
        found.setdefault(STEP, []).append(seconds(root.span) - data["timing_s/step"])
        for name, timer in TIMERS.items():
            if timer.same and (theirs := data.get(f"timing_s/{name}")) is not None:
                key = timer.phase, timer.role and str(timer.role)
                if key in ours:  # some releases save a checkpoint after the step
                    found.setdefault(name, []).append(ours[key] - theirs)
    return found
