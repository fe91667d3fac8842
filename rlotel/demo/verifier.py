"""The program inside the sandbox: scores one batch of answers per line of JSON.

It runs as a script in an interpreter of its own (``python -I -S verifier.py``), so it imports the standard
library only. One line in, ``{"answers": [["3+4=", "7."], …]}``; one line out, ``{"rewards": [1.0, …]}``.

The reward of a completion:

* 1.0 for the right number, written without leading zeros, and the end mark;
* 0.1 for one or two digits and the end mark, when the number is wrong: the format is right;
* 0.0 for everything else, a truncated or malformed completion included.
"""

import json
import re
import sys
from typing import Any

RIGHT = 1.0
WELL_FORMED = 0.1

CPU_SECONDS = 5
MEMORY_BYTES = 256 * 1024**2

_PROMPT = re.compile(r"([0-9])([+-])([0-9])=", re.ASCII)
_COMPLETION = re.compile(r"([0-9]{1,2})\.", re.ASCII)


def score(prompt: Any, completion: Any) -> float:
    """The reward of one completion, 0 to 1; whatever is malformed gets 0."""
    if not isinstance(prompt, str) or not isinstance(completion, str):
        return 0.0
    question, answer = _PROMPT.fullmatch(prompt), _COMPLETION.fullmatch(completion)
    if question is None or answer is None:
        return 0.0
    left, operator, right = question.groups()
    expected = int(left) + int(right) if operator == "+" else int(left) - int(right)
    return RIGHT if answer.group(1) == str(expected) else WELL_FORMED


def _limit(name: str, value: int) -> None:
    # Each limit stands alone: macOS knows RLIMIT_AS but refuses to lower it, and some systems lack NPROC.
    try:
        import resource

        resource.setrlimit(getattr(resource, name), (value, value))
    except (ImportError, AttributeError, ValueError, OSError):
        return


def _lock_down() -> None:
    """No new files, no file contents, no processes, no core dumps, bounded memory."""
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NPROC", 0)
    _limit("RLIMIT_AS", MEMORY_BYTES)
    _limit("RLIMIT_NOFILE", 0)


def _allow_cpu() -> None:
    """Lets this batch use CPU_SECONDS more; the kernel ends the process beyond that.

    The limit counts over the life of the process, which serves a whole run, so it moves with each batch.
    """
    try:
        import resource
    except ImportError:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = used + 1 + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))


def main() -> None:
    """Serves batches from standard input until it is closed."""
    _lock_down()
    for line in sys.stdin:
        _allow_cpu()
        rewards = [score(prompt, completion) for prompt, completion in json.loads(line)["answers"]]
        sys.stdout.write(json.dumps({"rewards": rewards}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
