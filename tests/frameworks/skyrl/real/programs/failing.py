"""A trainer that breaks off in its second iteration. Usage: python failing.py environment|update|async.

An environment that fails beside an asynchronous trainer ends the process; the other failures are raised.
"""

import asyncio
import sys

import made_up  # type: ignore[import-not-found]

import rlotel

ITERATION = 8 * 2
"""Steps that the environments of one iteration take, or more than the mini-batches it is trained on."""

if __name__ == "__main__":
    rlotel.instrument(frameworks=["skyrl"])
    kind = sys.argv[1]
    asynchronous = made_up.ASYNCHRONOUS if kind == "async" else ()
    trainer = made_up.make(made_up.configuration("trainer.eval_interval=-1", *asynchronous), kind)
    if kind == "update":
        made_up.Dispatch.left = iter(range(5))
    else:
        made_up.Add.left = iter(range(ITERATION + 5))
    try:
        asyncio.run(trainer.train())
    except (made_up.BrokenEnvironment, made_up.BrokenUpdate) as error:
        print(f"raised {type(error).__name__}: {error}")
