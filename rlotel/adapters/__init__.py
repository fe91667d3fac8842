"""For a trainer that rlotel does not know: what it logs becomes the metrics and traces of the model.

```python
import rlotel
from rlotel.adapters import each, follow, gauge, milliseconds, seconds, total

rlotel.instrument(algorithm="PPO")
follow(
    "wandb",
    {
        "reward": "rl.environment.reward.mean",
        "train/pg_loss": gauge("rl.train.loss", type="policy"),
        "time/rollout_s": seconds("sample"),
        "time/update_ms": milliseconds("train"),
        "num_tokens": total("rl.train.tokens"),
        "episodes": each("rl.sample.episodes"),
    },
    system="mytrainer",
    evaluation="eval/",
)
```

One step that is logged is one iteration. It lasts as long as is logged of it (`seconds("loop")`), else from the
end of the one before; the first, whose beginning nobody knows, has no duration then. Its phases are taken to
follow each other in the order of the table, the last one ending as it was logged. Where they are longer than the
iteration they overlapped, and each ends as it was logged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from rlotel import session
from rlotel.adapters.log import Log
from rlotel.adapters.sources import Connect, source_of
from rlotel.config import resolve, sdk_disabled
from rlotel.errors import log as messages
from rlotel.logged.meanings import Meaning, each, gauge, milliseconds, seconds, total
from rlotel.logged.tables import Keys, Table
from rlotel.opened import Session
from rlotel.patching import Patches

__all__ = ["Keys", "Log", "Meaning", "each", "follow", "gauge", "logger", "milliseconds", "seconds", "total"]

_following: WeakKeyDictionary[Session, dict[str, Log]] = WeakKeyDictionary()
"""What each session follows: who runs a cell of a notebook again means the same trainer."""


def follow(
    source: str | os.PathLike[str],
    keys: Keys,
    *,
    step: str | None = None,
    time: str | None = None,
    evaluation: str | Iterable[str] = (),
    system: str | None = None,
) -> Log:
    """Follow a trainer by what it logs. Once, after `rlotel.instrument()` and before training.

    Its calls are watched and not changed; `rlotel.uninstrument()` ends that. Following the same source again
    replaces its table.

    Args:
        source: `wandb`, `tensorboard` (PyTorch's and tensorboardX's), `mlflow`; a function of the trainer's that
            is given a dictionary, as `package.module:Class.method`; or the path of a file of JSON lines, which is
            read as it grows.
        keys: log keys, and what each means: the name of a gauge, or what `gauge`, `seconds`, `milliseconds`,
            `total` and `each` make, or several of these. Other keys are left out; `Log.unmapped` lists them.
        step: key that has the iteration's number. Without it the logger's own step counts; without that, too, an
            iteration begins as a key comes again.
        time: key that has the time of a line, of a file.
        evaluation: what the keys of evaluations begin with: they become `rl.evaluation.score`, and nothing else.
        system: the trainer's name, `rl.system`.

    Raises:
        SettingError: the source or a meaning is none; the message names the key. Nothing is followed then.
    """
    table = Table.of(keys, step=step, time=time, evaluation=evaluation, system=system)
    name, connect = source_of(source)
    return _open(name, table, connect)


def logger(
    keys: Keys,
    *,
    step: str | None = None,
    evaluation: str | Iterable[str] = (),
    system: str | None = None,
) -> Log:
    """A log of one's own, for anything that `follow` does not reach: call it with a dictionary, and a step.

    Args:
        keys: as for `follow`, and so are the others.
        step: key that has the iteration's number.
        evaluation: what the keys of evaluations begin with.
        system: the trainer's name.

    Raises:
        SettingError: a meaning is none; the message names the key.
    """
    return _open("", Table.of(keys, step=step, evaluation=evaluation, system=system), None)


def _open(name: str, table: Table, connect: Connect | None) -> Log:
    opened = session.current()
    if opened is None:
        if resolve({}, os.environ).enabled and not sdk_disabled(os.environ):
            messages.warning("rlotel is not on, so nothing is followed: call rlotel.instrument() before")
        return Log(name, table, None)
    recorder = opened.recorder
    recorder.identify(system=table.system)
    log = Log(name or "the trainer", table, recorder)
    recorder.process.when_ending(log.end)
    opened.patches.when_undone(log.close)
    if connect is not None:
        if before := _following.setdefault(opened, {}).get(name):
            before.close()
        _following[opened][name] = log
        patches = Patches(recorder.faults)
        log.let_go = patches.undo
        connect(patches, log, table, recorder)
    return log
