"""Writes the files in `data` with the packages that write them: `python -m tests.importing.record` in their venv.

They are small runs of six steps, 10 s apart, by a clock that stands where it is put.
"""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

DATA = Path(__file__).parent / "data"
BEGAN = 1_790_000_000.0
STEPS = 6


def values(step: int) -> dict[str, float]:
    """What is logged of a step."""
    return {
        "train/reward": step / 8,
        "train/loss": 1 / step,
        "time/rollout": 4.0,
        "time/update": 3.0,
        "num_tokens": 1000.0 * step,
        "eval/score": 0.5,
    }


def lines(path: Path) -> None:
    """JSON lines."""
    with path.open("w") as file:
        for step in range(1, STEPS + 1):
            file.write(json.dumps({"timestamp": BEGAN + 10 * step, "step": step, **values(step)}) + "\n")


def events(folder: Path, module: Any) -> None:
    """TensorBoard's files, by tensorboardX or PyTorch."""
    with module.SummaryWriter(str(folder)) as writer:
        for step in range(1, STEPS + 1):
            for key, value in values(step).items():
                writer.add_scalar(key, value, step, walltime=BEGAN + 10 * step)
            writer.add_scalars("both", {"a": step, "b": 2 * step}, step, walltime=BEGAN + 10 * step)
            writer.add_text("note", "none of our business", step)
            if "torch" in module.__name__:
                for name, precise in (("single", False), ("double", True)):
                    writer.add_scalar(
                        f"tensor/{name}",
                        step / 3,
                        step,
                        BEGAN + 10 * step,
                        new_style=True,
                        double_precision=precise,
                    )
    for file in list(folder.rglob("*.tfevents.*")):
        file.rename(file.with_name(f"events.out.tfevents.{int(BEGAN)}.recorded"))


def _quiet(wandb: Any) -> dict[str, Any]:
    """Settings that keep what says something of this machine out of the file; their names begin with x_ by now."""
    names = ("disable_stats", "disable_meta")
    known = dir(wandb.Settings)
    return {f"x_{name}" if f"x_{name}" in known else f"_{name}": True for name in names}


def offline_run(folder: Path, *, dated: bool) -> None:
    """W&B's file of an offline run; with times of its own, which W&B's other threads do not always bear."""
    import wandb

    settings = wandb.Settings(console="off", silent=True, disable_git=True, disable_code=True, **_quiet(wandb))
    run = wandb.init(mode="offline", dir=str(folder), project="rlotel", id="recorded", settings=settings)
    with patch("time.time") if dated else nullcontext() as now:
        for step in range(1, STEPS + 1):
            if now is not None:
                now.return_value = BEGAN + 10 * step
            run.log({**values(step), "nested": {"a": step}, "text": "hello"}, step=step)
    run.finish()
    wandb.teardown()  # only then all of it is on the disk


def main() -> None:
    """Write those whose package is here."""
    DATA.mkdir(exist_ok=True)
    lines(DATA / "run.jsonl")
    try:
        import tensorboardX
    except ModuleNotFoundError:
        pass
    else:
        shutil.rmtree(DATA / "tensorboardx", ignore_errors=True)
        events(DATA / "tensorboardx", tensorboardX)
    try:
        from torch.utils import tensorboard
    except ModuleNotFoundError:
        pass
    else:
        shutil.rmtree(DATA / "torch", ignore_errors=True)
        events(DATA / "torch", tensorboard)
    try:
        import wandb
    except ModuleNotFoundError:
        pass
    else:
        folder = DATA / "recording"
        folder.mkdir(exist_ok=True)  # or older releases take another
        offline_run(folder, dated=True)
        (file,) = folder.rglob("*.wandb")
        file.replace(DATA / f"by-{wandb.__version__}.wandb")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
