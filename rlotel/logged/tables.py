"""Key tables: held against the model as they are made, so that a wrong name is said before anything is logged."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlotel import gates
from rlotel.errors import SettingError
from rlotel.instruments import Value
from rlotel.integrations.tables import Gauge
from rlotel.logged.meanings import Meaning
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import LossType, PhaseName, SampleKind
from rlotel.semconv.types import Attribute, Metric, Use
from rlotel.words import CHECKPOINT, IDLE, LOOP, OTHER, SAMPLE, SYNC, WORDS

Written = str | Metric | Meaning | Gauge
"""One meaning, as it may be given: the name of a metric will do for a gauge that needs no more said of it."""
Keys = Mapping[str, Written | Sequence[Written]]


@dataclass(frozen=True)
class Duration:
    """How long a phase took, or for `loop` the iteration."""

    phase: str
    factor: float
    """What makes seconds of the logged value."""
    attributes: Mapping[str, Value]

    @property
    def waits(self) -> bool:
        """Whether the trainer only stands waiting meanwhile."""
        return self.attributes.get(attr.SAMPLE_KIND.name) == SampleKind.WAIT.value


@dataclass(frozen=True)
class Count:
    """How many of something there were."""

    phase: str
    keyword: str
    """That of `add()` for the phase."""
    metric: Metric
    attributes: Mapping[str, Value]
    cumulative: bool

    @property
    def role(self) -> Value | None:
        """The model it is about, where there are several."""
        return self.attributes.get(attr.ROLE.name)


Entry = Gauge | Duration | Count


@dataclass(frozen=True)
class Table:
    """What the keys of one trainer's log mean.

    Raises:
        SettingError: at `Table.of`: a meaning is none; the message names the key.
    """

    entries: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    step: str | None = None
    """Key that has the iteration's number, where the logger is not told it, or is told another one."""
    time: str | None = None
    """Key that has the time of a line of a file."""
    evaluation: tuple[str, ...] = ()
    """What the keys of evaluations begin with."""
    system: str | None = None
    """The trainer's name."""

    @staticmethod
    def of(
        keys: Keys,
        *,
        step: str | None = None,
        time: str | None = None,
        evaluation: str | Iterable[str] = (),
        system: str | None = None,
    ) -> Table:
        """Make a table of what a user wrote."""
        for name, text in (("step", step), ("time", time), ("system", system)):
            if text is not None and not isinstance(text, str):
                raise SettingError(name, f"{text!r} is no text")
        prefixes = (evaluation,) if isinstance(evaluation, str) else _prefixes(evaluation)
        if not all(prefixes):
            raise SettingError("evaluation", "an empty prefix would make an evaluation of every key")
        if not isinstance(keys, Mapping) or not all(isinstance(key, str) for key in keys):
            raise SettingError("keys", f"{keys!r} is no table: use a dictionary of log keys and what each means")
        entries = {key: tuple(_entry(key, one) for one in _several(written)) for key, written in keys.items()}
        for key, meant in entries.items():
            if key.startswith(prefixes) and any(not _is_score(entry) for entry in meant):
                raise SettingError(
                    _named(key),
                    "its prefix says that it is of an evaluation: it must not enter training's metrics",
                )
        return Table(entries, step, time, prefixes, system)

    def of_evaluation(self, key: str) -> str | None:
        """The name of a score without the prefix of evaluations; None if the key is not one's."""
        for prefix in self.evaluation:
            if key.startswith(prefix):
                return key.removeprefix(prefix)
        return None


def _prefixes(written: Any) -> tuple[str, ...]:
    prefixes = tuple(written) if isinstance(written, Iterable) else (written,)
    if all(isinstance(prefix, str) for prefix in prefixes):
        return prefixes
    raise SettingError("evaluation", f"{written!r} is no prefix of keys: use a text, or a list of texts")


def _several(written: Written | Sequence[Written]) -> Sequence[Written]:
    return written if isinstance(written, (tuple, list)) else (written,)


def _is_score(entry: Entry) -> bool:
    return isinstance(entry, Gauge) and entry.metric is m.EVALUATION_SCORE


def _named(key: str) -> str:
    return f"table key {key!r}"


def _entry(key: str, written: Any) -> Entry:
    if isinstance(written, Gauge):
        return written
    meaning = written if isinstance(written, Meaning) else Meaning("gauge", written)
    if meaning.how in ("seconds", "milliseconds"):
        return _duration(key, meaning)
    metric = _metric(key, meaning.what)
    return _gauge(key, metric, meaning) if meaning.how == "gauge" else _count(key, metric, meaning)


def _metric(key: str, what: Any) -> Metric:
    if isinstance(what, Metric):
        return what
    if not isinstance(what, str):
        raise SettingError(_named(key), f"{what!r} is no metric: give a name such as rl.environment.reward.mean")
    found = m.BY_NAME.get(what)
    if found is None:
        raise SettingError(_named(key), f"{what} is no metric of the model{_near(what, m.BY_NAME)}")
    return found


def _gauge(key: str, metric: Metric, meaning: Meaning) -> Gauge:
    if metric.instrument == "histogram" and metric.unit == "s":
        word = next((word for word, found in WORDS.items() if found.duration is metric), PhaseName.LOGPROB.value)
        word = LOOP if metric is m.LOOP_DURATION else word
        raise SettingError(
            _named(key),
            f'{metric} is a duration: say seconds("{word}") or milliseconds("{word}"), as it is logged',
        )
    if metric in _COUNTED:
        raise SettingError(
            _named(key),
            f'{metric} is a counter: say total("{metric}") if what is logged grows over the run, each("{metric}") '
            "if it is of one step",
        )
    if metric not in _TOLD:
        raise SettingError(_named(key), f"{metric} is found out by rlotel itself, not told by a log")
    defaults: dict[str, Value] = {}
    if metric is m.TRAIN_LOSS:
        defaults[attr.LOSS_TYPE.name] = LossType.TOTAL.value
    if metric is m.EVALUATION_SCORE:
        defaults[attr.EVALUATION_NAME.name] = key
    attributes = _attributes(key, str(metric), metric.attributes, meaning.attributes, defaults)
    return Gauge(metric, attributes, _scale(key, meaning.scale), bool(meaning.zero_is_unknown))


def _scale(key: str, scale: Any) -> float:
    try:
        found = gates.number(scale)
    except gates.Refused:
        found = math.nan
    if not math.isfinite(found):
        raise SettingError(_named(key), f"scale is {scale!r}: use a number")
    return found


def _count(key: str, metric: Metric, meaning: Meaning) -> Count:
    if metric not in _COUNTED:
        raise SettingError(
            _named(key),
            f"{metric} is no count that a log tells; such are {', '.join(sorted(map(str, _COUNTED)))}",
        )
    attributes = _attributes(key, str(metric), metric.attributes, meaning.attributes, {})
    without_role = {name: value for name, value in attributes.items() if name != attr.ROLE.name}
    phase, keyword = _COUNTED[metric][tuple(without_role.items())]
    return Count(phase, keyword, metric, attributes, meaning.how == "total")


def _duration(key: str, meaning: Meaning) -> Duration:
    phase = _phase(key, meaning.what)
    if phase == IDLE:
        raise SettingError(_named(key), "idle is what is left of an iteration: rlotel finds it out itself")
    factor = 1.0 if meaning.how == "seconds" else 1e-3
    if phase == LOOP:
        _attributes(key, LOOP, (), meaning.attributes, {})
        return Duration(LOOP, factor, {})
    word = WORDS.get(phase, OTHER)
    defaults: dict[str, Value] = {attr.SAMPLE_KIND.name: SampleKind.GENERATE.value} if phase == SAMPLE else {}
    if phase == CHECKPOINT:
        defaults[attr.CHECKPOINT_BLOCKING.name] = True
    if phase == SYNC:
        defaults[attr.SYNC_SOURCE.name] = "learner"
    found_out = (attr.PHASE_NAME, attr.ERROR_TYPE)
    uses = tuple(use for use in word.duration.attributes if use.attribute not in found_out)
    return Duration(phase, factor, _attributes(key, f"the phase {phase}", uses, meaning.attributes, defaults))


def _phase(key: str, what: Any) -> str:
    if m.LOOP_DURATION in (what, m.BY_NAME.get(str(what))):
        return LOOP
    metric = what if isinstance(what, Metric) else m.BY_NAME.get(str(what))
    for name, word in WORDS.items():
        if metric is not None and word.duration is metric:
            return name
    phases = [phase.value for phase in PhaseName]
    if metric is not None or not isinstance(what, str) or what.startswith(("rl.", "rlotel.")):
        raise SettingError(_named(key), f"{what} is no phase: give a word, such as {', '.join(phases[1:10])}")
    if what not in phases and (near := difflib.get_close_matches(what, phases, n=1, cutoff=0.75)):
        raise SettingError(_named(key), f"there is no phase {what!r}; did you mean {near[0]}?")
    if not what.strip():
        raise SettingError(_named(key), "the phase has no name")
    return what


def _attributes(
    key: str, of: str, uses: tuple[Use, ...], given: Mapping[str, Any], defaults: Mapping[str, Value]
) -> dict[str, Value]:
    """The attributes by their full names, in the model's order."""
    known = {use.attribute.name.rpartition(".")[2]: use.attribute for use in uses}
    by_name = {attribute.name: attribute for attribute in known.values()}
    found = dict(defaults)
    for said, value in given.items():
        attribute = by_name.get(said) or known.get(said)
        if attribute is None:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise SettingError(_named(key), f"{of} has no attribute {said!r}; {takes}")
        found[attribute.name] = _value(key, attribute, value)
    for use in uses:
        if use.requirement == "required" and use.attribute.name not in found:
            short = use.attribute.name.rpartition(".")[2]
            one_of = ", ".join(use.attribute.members) or use.attribute.examples[0]
            raise SettingError(_named(key), f"{of} needs {use.attribute}: give {short}=, such as {one_of}")
    return {name: found[name] for name in by_name if name in found}


def _value(key: str, attribute: Attribute, value: Any) -> Value:
    if attribute.type == "boolean":
        if type(value) is not bool:
            raise SettingError(_named(key), f"{attribute} is {value!r}: use true or false")
        return value
    if not isinstance(value, str) or not value:
        raise SettingError(_named(key), f"{attribute} is {value!r}: use a text")
    text = str(value)
    if text in attribute.members:
        return text
    if attribute.closed:
        raise SettingError(_named(key), f"{attribute} is {text!r}; it is one of {', '.join(attribute.members)}")
    if attribute.members and (near := difflib.get_close_matches(text, attribute.members, n=1, cutoff=0.75)):
        raise SettingError(_named(key), f"{attribute} is {text!r}; did you mean {near[0]}?")
    return text


def _near(name: str, names: Iterable[str]) -> str:
    listed = list(names)
    near = difflib.get_close_matches(name, listed, n=1, cutoff=0.7) or [one for one in listed if name in one][:3]
    return f"; did you mean {' or '.join(near)}?" if near else "; `rlotel semconv list` lists them"


def _counted() -> dict[Metric, dict[tuple[tuple[str, Value], ...], tuple[str, str]]]:
    found: dict[Metric, dict[tuple[tuple[str, Value], ...], tuple[str, str]]] = {}
    for phase, word in WORDS.items():
        for keyword, (metric, attributes) in word.counters.items():
            found.setdefault(metric, {})[tuple(attributes.items())] = phase, keyword
    return found


_COUNTED = _counted()
"""The counters that phases feed, and by which attributes which keyword of which phase does."""

_TOLD = frozenset(
    metric
    for metric in m.ALL
    # What is in seconds grows by itself.
    if metric.instrument == "gauge" and metric.owner == "loop" and metric.unit != "s"
) - {m.LOOP_IDLE_RATIO, m.CHECKPOINT_STEP}
"""The gauges whose value a log may tell."""
