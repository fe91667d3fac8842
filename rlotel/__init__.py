"""rlotel: OpenTelemetry for reinforcement-learning training.

```python
import rlotel

rlotel.instrument()  # once, before training
```
"""

import importlib
from typing import TYPE_CHECKING

from rlotel.brackets import Bracket, checkpoint, loop, phase, reward, sample, sync, train
from rlotel.errors import SettingError
from rlotel.handles import Handle
from rlotel.session import instrument, uninstrument
from rlotel.version import __version__

if TYPE_CHECKING:
    from rlotel import adapters
    from rlotel.opened import Session

__all__ = [
    "Bracket",
    "Handle",
    "Session",
    "SettingError",
    "__version__",
    "adapters",
    "checkpoint",
    "instrument",
    "loop",
    "phase",
    "reward",
    "sample",
    "sync",
    "train",
    "uninstrument",
]


def __getattr__(name: str) -> object:
    """`Session` and `adapters`, whose modules load the SDK: only when they are asked for."""
    if name == "Session":
        from rlotel.opened import Session

        return Session
    if name == "adapters":
        return importlib.import_module("rlotel.adapters")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
