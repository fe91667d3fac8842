"""Recorded runs of every version, replayed: what is reported equals what NeMo RL itself measured and logged."""

from pathlib import Path

import pytest

from rlotel import conformance
from .conftest import Nemo
from .replay import Replay, Trace

def test_x(nemo: Nemo) -> None:
    trace = Trace(Path(__file__).parent/"traces"/"main-sync.json")
    replay = Replay(nemo, trace, master_config={}, task_to_env={"math": None})
    print(replay.timed)
    for p in nemo.telemetry.points(): print(p.name, p.attributes, p.value if p.kind!="histogram" else (p.count,p.sum))
    assert 0
