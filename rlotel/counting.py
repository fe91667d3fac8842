"""What a phase counts: in a counter of its own, as a number of its loop, or both."""

from __future__ import annotations

import threading

from rlotel.instruments import Instruments
from rlotel.phases import Phase
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.words import ANY_LOOP_COUNTS, BYTES, FLOPS, LOOP_COUNTS


class Counting:
    """Adds up what phases did; safe in any thread."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._summing = threading.RLock()

    def add(self, phase: Phase, what: str, amount: float) -> None:
        """Count `amount` of `what`, a keyword of `add()`.

        Raises:
            TypeError: such a phase does not count that.
        """
        counter = phase.word.counters.get(what)
        if counter is not None:
            role = phase.metric_attributes.get(attr.ROLE.name)
            attributes = counter[1] if role is None else {**counter[1], attr.ROLE.name: role}
            self._instruments.add(counter[0], amount, attributes)
            self._sum(phase, what, amount)
        elif what == BYTES and phase.word.size is not None:
            self._sum(phase, BYTES, amount)
            return
        elif what not in (others := LOOP_COUNTS.get(phase.name, ANY_LOOP_COUNTS)):
            known = ", ".join(sorted({*phase.word.counters, *others, *([BYTES] if phase.word.size else [])}))
            raise TypeError(f"{phase.name} does not count {what}; it counts {known}")
        if what == FLOPS:
            of_phase = {**phase.metric_attributes, attr.PHASE_NAME.name: phase.name}
            self._instruments.add(m.PHASE_FLOPS, amount, of_phase)
        if phase.loop is not None:
            phase.loop.count(f"{phase.name}.{what}", amount)

    def _sum(self, phase: Phase, what: str, amount: float) -> None:
        with self._summing:
            phase.counts[what] = phase.counts.get(what, 0.0) + amount
            if (name := phase.word.on_span.get(what)) is not None:
                phase.told[name] = phase.told.get(name, 0.0) + amount
