"""The key tables of trainers that rlotel knows: those of its integrations, as their loggers spell the keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rlotel.errors import SettingError
from rlotel.integrations.tables import Gauge, Gauges, Timed, several
from rlotel.logged.meanings import Meaning, each, seconds
from rlotel.logged.tables import Table
from rlotel.words import LOOP

Keys = dict[str, Meaning | tuple[Gauge, ...]]


def preset(name: str) -> Table:
    """The table of one trainer.

    Raises:
        SettingError: there is none of that name.
    """
    if name not in PRESETS:
        raise SettingError("preset", f"there is none for {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]()


def _gauges(table: Gauges, prefix: str = "") -> Keys:
    return {f"{prefix}{key}": several(gauges) for key, gauges in table.items()}


def _timers(table: Mapping[str, Timed], prefix: str) -> Keys:
    """Those that always mean what our phases mean; a timer that only may is left out."""
    return {
        name if name.startswith(prefix) else f"{prefix}{name}": _timed(timed)
        for name, timed in table.items()
        if timed.same
    }


def _timed(timed: Timed) -> Meaning:
    said = {
        "role": timed.role and str(timed.role),
        "kind": timed.kind and timed.kind.value,
        "operation": timed.operation and timed.operation.value,
    }
    return seconds(timed.phase, **{name: value for name, value in said.items() if value})


def _table(system: str, *parts: Keys, step: str | None, evaluation: Iterable[str]) -> Table:
    keys = {key: meant for part in parts for key, meant in part.items()}
    return Table.of(keys, step=step, evaluation=evaluation, system=system)


def _areal() -> Table:
    from rlotel.integrations.areal.tables import EVALUATIONS, GAUGES, TIMERS

    return _table(
        "areal",
        _gauges(GAUGES),
        _timers(TIMERS, "timeperf/"),
        {"ppo_actor/n_seqs": each("rl.sample.samples"), "ppo_actor/n_tokens": each("rl.train.tokens")},
        step="global_step",
        evaluation=EVALUATIONS,
    )


def _nemo_rl() -> Table:
    from rlotel.integrations.nemo_rl.tables import PERFORMANCE_GAUGES, STEP, TIMERS, TRAIN_GAUGES

    # What is added up over optimizer steps can't be told from the log alone.
    train = {key: gauge for key, gauge in TRAIN_GAUGES.items() if not gauge.summed}
    return _table(
        "nemo-rl",
        _gauges(train, "train/"),
        _gauges(PERFORMANCE_GAUGES, "performance/"),
        _timers(TIMERS, "timing/train/"),
        {f"timing/train/{STEP}": seconds(LOOP)},
        step="train/step",
        evaluation=("validation/",),
    )


def _openrlhf() -> Table:
    from rlotel.integrations.openrlhf.tables import GAUGES

    return _table("openrlhf", _gauges(GAUGES, "train/"), step="train/global_step", evaluation=("eval/",))


def _rllib() -> Table:
    """As Tune writes it: joined by dots in result.json, by slashes in event files."""
    from rlotel.integrations.rllib.tables import EPISODES, LEARNER

    episodes, learner = _gauges(EPISODES, "env_runners/"), _gauges(LEARNER, "learners/default_policy/")
    counted: Keys = {
        "env_runners/num_episodes": each("rl.sample.episodes"),
        "env_runners/num_env_steps_sampled": each("rl.sample.steps"),
        "time_this_iter_s": seconds(LOOP),
    }
    named = {**episodes, **learner, **counted}
    return _table(
        "ray-rllib",
        {key.replace("/", "."): meant for key, meant in named.items()},
        {f"ray/tune/{key}": meant for key, meant in named.items()},
        step="training_iteration",
        evaluation=("evaluation.", "ray/tune/evaluation/"),
    )


def _rsl_rl() -> Table:
    from rlotel.integrations.rsl_rl.tables import EPISODES, LEARNING, UPDATE

    episodes = {"Train/mean_reward": EPISODES["returns"], "Train/mean_episode_length": EPISODES["lengths"]}
    timed: Keys = {
        "Perf/collection_time": seconds("sample"),
        "Perf/collection time": seconds("sample"),  # to 3.1
        "Perf/learning_time": seconds("train"),
    }
    return _table(
        "rsl-rl",
        _gauges(UPDATE, "Loss/"),
        _gauges(LEARNING, "Loss/"),
        _gauges(episodes),
        timed,
        step=None,
        evaluation=(),
    )


def _skyrl() -> Table:
    from rlotel.integrations.skyrl.tables import GAUGES, SCORES, STEP, TIMERS, TOLD

    return _table(
        "skyrl",
        _gauges(GAUGES),
        _timers(TIMERS, "timing/"),
        {f"timing/{STEP}": seconds(LOOP)},
        step=TOLD,
        evaluation=(SCORES,),
    )


def _stable_baselines3() -> Table:
    from rlotel.integrations.stable_baselines3.tables import EPISODES, EVALUATED, TRAINED

    episodes = {"rollout/ep_rew_mean": EPISODES["returns"], "rollout/ep_len_mean": EPISODES["lengths"]}
    return _table(
        "stable-baselines3",
        _gauges(TRAINED),
        _gauges(episodes),
        step="time/total_timesteps",
        evaluation=(EVALUATED,),
    )


def _trl() -> Table:
    from rlotel.integrations.trl.tables import ONLINE

    return _table("trl", _gauges(ONLINE, "train/"), step="train/global_step", evaluation=("eval/",))


def _verl() -> Table:
    from rlotel.integrations.verl.tables import GAUGES, MFU, STEP, TIMERS, VALIDATION

    return _table(
        "verl",
        _gauges(GAUGES),
        _gauges(MFU),
        _timers(TIMERS, "timing_s/"),
        {f"timing_s/{STEP}": seconds(LOOP), "perf/total_num_tokens": each("rl.sample.tokens")},
        step="training/global_step",
        evaluation=(VALIDATION,),
    )


PRESETS: Mapping[str, Callable[[], Table]] = {
    "areal": _areal,
    "nemo_rl": _nemo_rl,
    "openrlhf": _openrlhf,
    "rllib": _rllib,
    "rsl_rl": _rsl_rl,
    "skyrl": _skyrl,
    "stable_baselines3": _stable_baselines3,
    "trl": _trl,
    "verl": _verl,
}
"""By the names of the integrations."""
