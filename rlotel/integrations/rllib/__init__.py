"""RLlib's new API stack in Ray 2.41 to 2.60: algorithms, and their env runners and learners as actors.

The loop is where the algorithm is: in the driver, or under Tune in the trial's actor. Of the old API stack the
loops are timed, and little else.
"""

from __future__ import annotations

from rlotel.integrations.rllib import tables
from rlotel.integrations.rllib.algorithms import Algorithms
from rlotel.integrations.rllib.trials import Trials
from rlotel.integrations.rllib.workers import Workers
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder

ALGORITHM = "ray.rllib.algorithms.algorithm:Algorithm"
CONFIG = "ray.rllib.algorithms.algorithm_config:AlgorithmConfig"
SAMPLERS = (
    "execution.rollout_ops",
    "algorithms.algorithm",
    "algorithms.ppo.ppo",
    "algorithms.dqn.dqn",
    "algorithms.marwil.marwil",
    "algorithms.dreamerv3.dreamerv3",
)
"""Modules with `synchronous_parallel_sample`: where it is made, and those that import it by name."""
BUFFERS = (
    "episode_replay_buffer:EpisodeReplayBuffer",
    "prioritized_episode_buffer:PrioritizedEpisodeReplayBuffer",
    "multi_agent_episode_buffer:MultiAgentEpisodeReplayBuffer",
    "multi_agent_prioritized_episode_buffer:MultiAgentPrioritizedEpisodeReplayBuffer",
)


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch RLlib; which of it happens in this process shows when it does."""
    # It is told by the first configuration, which may come long after Ray was started, or never.
    module, _, _ = CONFIG.partition(":")
    patches.before_import(module, lambda: recorder.identity.expect("algorithm"))
    algorithms, workers = Algorithms(recorder), Workers(recorder)
    patches.when_undone(algorithms.loops.stop)
    _watch_algorithms(patches, algorithms)
    _watch_phases(patches, algorithms)
    _watch_work(patches, algorithms, workers)
    trials = Trials(recorder)
    patches.watch("ray.tune.impl.tuner_internal:TunerInternal.fit", before=trials.begin)
    patches.watch("ray.tune.tune:run", before=trials.run)


def _watch_algorithms(patches: Patches, algorithms: Algorithms) -> None:
    loops = algorithms.loops
    for name in ("__init__", "environment"):
        patches.watch(f"{CONFIG}.{name}", after=algorithms.configured)
    patches.watch(f"{ALGORITHM}.__init__", before=algorithms.made)
    patches.watch(f"{ALGORITHM}.setup", before=algorithms.set_up)
    patches.watch(f"{ALGORITHM}.cleanup", after=algorithms.over, failed=algorithms.over)
    patches.watch(f"{ALGORITHM}.step", before=algorithms.begin, after=algorithms.end, failed=algorithms.failed)
    begun = loops.phase(tables.EVALUATION)["before"]
    patches.watch(f"{ALGORITHM}.evaluate", before=begun, after=algorithms.evaluated, failed=loops.shut)
    for name in ("save", "save_checkpoint", "save_to_path"):  # each calls the next, if it is there
        patches.watch(f"{ALGORITHM}.{name}", before=algorithms.saving, after=loops.shut, failed=loops.shut)
    for name in ("restore", "load_checkpoint", "restore_from_path"):
        patches.watch(f"{ALGORITHM}.{name}", before=algorithms.restoring, after=loops.shut, failed=loops.shut)
    for name in ("restore_env_runners", "restore_workers"):  # the latter before 2.46
        patches.watch(
            f"{ALGORITHM}.{name}",
            before=algorithms.restore_runners,
            after=algorithms.restored_runners,
            optional=True,
        )


def _watch_phases(patches: Patches, algorithms: Algorithms) -> None:
    stretches, updates = algorithms.stretches, algorithms.updates
    for module in SAMPLERS:
        patches.watch(
            f"ray.rllib.{module}:synchronous_parallel_sample",
            before=lambda call: stretches.begin(tables.GENERATE, call),
            after=stretches.end,
            failed=stretches.end,
        )
    patches.watch(
        "ray.rllib.algorithms.impala.impala:IMPALA._sample_and_get_connector_states",
        before=algorithms.ask,
        after=algorithms.asked,
    )
    group = "ray.rllib.core.learner.learner_group:LearnerGroup"
    for name in ("update", "update_from_batch", "update_from_episodes"):  # the former from 2.46
        patches.watch(
            f"{group}.{name}", before=updates.begin, after=updates.end, failed=updates.end, optional=True
        )
    patches.watch("ray.rllib.core.learner.torch.torch_learner:TorchLearner._update", after=updates.step)
    runners = "ray.rllib.env.env_runner_group:EnvRunnerGroup"
    patches.watch(
        f"{runners}.sync_weights",
        before=lambda call: stretches.begin(tables.WEIGHTS, call),
        after=stretches.end,
        failed=stretches.end,
    )
    for name in ("sync_env_runner_states", "get_merged_env_runner_state"):  # the latter from 2.60
        patches.watch(
            f"{runners}.{name}",
            before=algorithms.states,
            after=stretches.end,
            failed=stretches.end,
            optional=True,
        )
    buffers = [f"utils.replay_buffers.{buffer}.{name}" for buffer in BUFFERS for name in ("add", "sample")]
    for data in (*buffers, "offline.offline_data:OfflineData.sample"):
        patches.watch(
            f"ray.rllib.{data}",
            before=lambda call: stretches.begin(tables.DATA, call),
            after=stretches.end,
            failed=stretches.end,
            optional=True,
        )


def _watch_work(patches: Patches, algorithms: Algorithms, workers: Workers) -> None:
    """What is done in actors, or, where there are none, in the algorithm's process."""
    stretches = algorithms.stretches

    def sampling(call: Call) -> None:
        (workers if workers.is_one() else algorithms).sampling(call)

    def updating(call: Call) -> None:
        if workers.is_one():
            workers.updating(call)
        else:
            algorithms.updates.here(call)

    def done(call: Call) -> None:
        (workers if workers.is_one() else stretches).end(call)

    for runner in ("single_agent_env_runner:SingleAgentEnvRunner", "multi_agent_env_runner:MultiAgentEnvRunner"):
        patches.watch(f"ray.rllib.env.{runner}.sample", before=sampling, after=done, failed=done)
    learner = "ray.rllib.core.learner.learner:Learner"
    for name in ("update", "_update_from_batch_or_episodes"):  # the former from 2.46
        patches.watch(f"{learner}.{name}", before=updating, after=done, failed=done, optional=True)
    patches.watch(
        "ray.rllib.algorithms.impala.impala_learner:IMPALALearner.update", before=workers.asked, optional=True
    )
    patches.watch(
        "ray.rllib.algorithms.utils:AggregatorActor.get_batch",
        before=workers.batching,
        after=workers.end,
        failed=workers.end,
        optional=True,
    )
