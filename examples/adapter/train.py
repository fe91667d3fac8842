"""The trainer in obscure.py, followed by what it logs.

python examples/adapter/train.py
"""

from pathlib import Path

from obscure import Board, train

import rlotel
from rlotel.adapters import each, follow, gauge, milliseconds, total

rlotel.instrument(algorithm="REINFORCE", environment="corridor")
follow(
    "obscure:Board.log",
    {
        "rollout/return": "rl.environment.reward.mean",
        "rollout/length": "rl.environment.episode.length.mean",
        "rollout/episodes": each("rl.sample.episodes"),
        "env_steps": total("rl.sample.steps"),
        "learner/pg_loss": gauge("rl.train.loss", type="policy"),
        "time/rollout_ms": milliseconds("sample"),
        "time/update_ms": milliseconds("train"),
    },
    evaluation="eval/",
    system="obscure",
)
train(Board(Path("corridor.jsonl")))
