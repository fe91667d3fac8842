"""A trainer of SkyRL in this process. Usage: python loop.py sync|async [PATH=VALUE...].

`ITERATIONS` in the environment says how many.
"""

import asyncio
import sys
import time

import made_up  # type: ignore[import-not-found]

import rlotel

if __name__ == "__main__":
    rlotel.instrument(frameworks=["skyrl"])
    kind, *overrides = sys.argv[1:]
    asynchronous = made_up.ASYNCHRONOUS if kind == "async" else ()
    trainer = made_up.make(made_up.configuration(*asynchronous, *overrides), kind)
    began = time.perf_counter()
    asyncio.run(trainer.train())
    print(f"steps={trainer.dispatch.steps} version={trainer.inference_engine_client.weight_version}")
    print(f"seconds={time.perf_counter() - began:.4f}")
