"""rlotel: OpenTelemetry for reinforcement-learning training.

```python
import rlotel

rlotel.instrument()  # once, before training
```
"""

from rlotel.brackets import Bracket, checkpoint, loop, phase, reward, sample, sync, train
from rlotel.errors import SettingError
from rlotel.handles import Handle
from rlotel.session import Session, instrument, uninstrument
from rlotel.version import __version__

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
