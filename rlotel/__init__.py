"""rlotel: OpenTelemetry for reinforcement-learning training.

```python
import rlotel

rlotel.instrument()  # once, before training
```
"""

from typing import TYPE_CHECKING

from rlotel.brackets import Bracket, checkpoint, loop, phase, reward, sample, sync, train
from rlotel.errors import SettingError
from rlotel.handles import Handle
from rlotel.session import instrument, uninstrument
from rlotel.version import __version__

if TYPE_CHECKING:
    from rlotel.opened import Session

__all__ = [
    "Bracket",
    "Handle",
    "Session",
    "SettingError",
    "__version__",
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
    """`Session`, whose module loads the SDK: only when it is asked for."""
    if name == "Session":
        from rlotel.opened import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
