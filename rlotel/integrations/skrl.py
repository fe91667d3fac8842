"""skrl 2, with PyTorch: trainers that step one agent's environment, and the agent that updates itself in between.

A rollout is no function of skrl's: it goes on from `Agent.pre_interaction` to `Agent.update`. The two are a round;
those that take a moment only, as all off-policy ones, are gathered until a second has passed. What skrl tracks are
lists, which it averages and clears at a write interval of its own: the latest of each is read as an update ends.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from statistics import fmean
from typing import Any

from rlotel.integrations import devices
from rlotel.integrations.episodes import Episodes
from rlotel.integrations.rounds import Counts, Rounds
from rlotel.integrations.tables import Gauge, Gauges, Timed, loss, of
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, LossType, PhaseName, Role, SampleKind
from rlotel.words import CHECKPOINT, SAMPLE, TRAIN

AGENT = "skrl.agents.torch.base:Agent"
TRAINER = "skrl.trainers.torch.base:Trainer"
STEPPED = "skrl.trainers.torch.step:StepTrainer"
"""Its `train` is one step, called by a loop of the user's."""

ROLLOUT = Timed(SAMPLE, kind=SampleKind.GENERATE)
UPDATE = Timed(TRAIN)
EVALUATION = Timed(PhaseName.EVALUATE.value)
CHECKPOINTS = {
    "write_checkpoint": Timed(CHECKPOINT, operation=CheckpointOperation.SAVE),
    "save": Timed(CHECKPOINT, operation=CheckpointOperation.SAVE),
    "load": Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE),
}
"""Methods of `Agent`."""

ENTROPY_LOSS = "Loss / Entropy loss"
"""−scale·entropy where the configuration has that scale; SAC's is of its coefficient, which has no name here."""
GAUGES: Gauges = {
    "Loss / Policy loss": loss(LossType.POLICY),
    "Loss / Value loss": loss(LossType.VALUE),
    "Loss / Critic loss": loss(LossType.VALUE),
    "Loss / Q-network loss": loss(LossType.VALUE),
    "Learning / Learning rate": Gauge(m.LEARNING_RATE),
    "Learning / Policy learning rate": of(m.LEARNING_RATE, Role.ACTOR),
    "Learning / Critic learning rate": of(m.LEARNING_RATE, Role.CRITIC),
    "Learning / Value learning rate": of(m.LEARNING_RATE, Role.CRITIC),
    "Reward / Total reward (mean)": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "Episode / Total timesteps (mean)": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
}
EPISODES = ("Reward / Total reward (mean)", "Episode / Total timesteps (mean)")
"""Of an evaluation, these are its scores."""
OPTIMIZERS = ("optimizer", "critic_optimizer")
"""Where the one is that steps once a gradient step; TRPO has none for its policy. The scaler that steps it is
watched: a scheduler has put a `step` of its own on the optimizer before it could be."""


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch the base classes; an agent's own class is watched from when it is made: its methods are abstract."""
    learning = _Learning(patches, recorder)
    patches.watch(f"{AGENT}.__init__", after=lambda call: learning.meet(type(call.instance)))
    patches.watch(f"{TRAINER}.train", before=learning.begin, after=learning.end, failed=learning.end)
    patches.watch(f"{STEPPED}.train", before=learning.begin, failed=learning.end)
    for trainer in (TRAINER, STEPPED):
        patches.watch(f"{trainer}.eval", **learning.rounds.apart(EVALUATION))
    for method, timed in CHECKPOINTS.items():
        patches.watch(f"{AGENT}.{method}", **learning.rounds.apart(timed))
    patches.watch(f"{AGENT}.write_tracking_data", before=learning.written)
    patches.when_undone(learning.stop)


class _Learning:
    """Follows the agent that is learning; there is one at a time."""

    def __init__(self, patches: Patches, recorder: Recorder) -> None:
        self.rounds = Rounds(recorder, self._counts)
        self.rounds.loops.closing.append(self._tell)
        self._patches = patches
        self._recorder = recorder
        self._met: set[type] = set()
        self._let_go: list[Callable[[], None]] = []
        self._agent: Any = None
        self._env: Any = None
        self._gauges: Gauges = GAUGES
        self._forget()

    def _forget(self) -> None:
        while self._let_go:
            self._let_go.pop()()
        self._agent = self._env = self._optimizer = None
        self._steps = self._updates = 0
        self._seconds, self._updating = 0.0, False
        self._episodes = Episodes()
        self._latest: dict[str, Any] = {}

    def meet(self, kind: type) -> None:
        """A class of agents: watched now, for its users may wrap its methods before they train."""
        if kind not in self._met:
            self._met.add(kind)
            self._patches.watch_method(kind, "pre_interaction", before=self._interacts)
            self._patches.watch_method(
                kind, "update", before=self._updates_it, after=self._updated, failed=self._updated
            )

    # The trainer.

    def begin(self, call: Call) -> None:
        """`train` begins, or goes on by a step."""
        agents = call.instance.agents
        agent = agents[0] if isinstance(agents, (list, tuple)) and len(agents) == 1 else agents
        if agent is self._agent or not isinstance(agent, sys.modules["skrl.agents.torch.base"].Agent):
            return  # several agents, or one of several players, are not followed
        self._close()
        self._agent, self._env = agent, call.instance.env
        self.meet(type(agent))
        self._let_go.append(
            self._patches.watch_method(type(self._env), "step", before=self._steps_it, after=self._stepped)
        )
        self._optimizer = next((found for name in OPTIMIZERS if (found := getattr(agent, name, None))), None)
        if self._optimizer is not None:
            self._let_go.append(self._patches.watch_method(type(agent.scaler), "step", after=self._optimized))
        self._set_up(agent, call.instance.env)

    def end(self, call: Call) -> None:
        """It has ended, or failed."""
        self._close(call.error)

    def stop(self) -> None:
        """The session or the process ends, and with it a loop of the user's, of which nobody else says so."""
        atexit.unregister(self.stop)
        with self._recorder.faults.contain("the end of training"):
            self._close()

    def _close(self, error: BaseException | None = None) -> None:
        self.rounds.close(error)
        self._forget()

    def _set_up(self, agent: Any, env: Any) -> None:
        skrl, config = sys.modules["skrl"], agent.cfg
        spec, model = getattr(env, "spec", None), agent.models.get("policy", agent.models.get("q_network"))
        self._recorder.identify(
            system="skrl",
            system_version=skrl.__version__,
            algorithm=type(agent).__name__,
            model=None if model is None else type(model).__name__,
            environment=type(vars(env).get("_unwrapped", env)).__name__ if spec is None else spec.id,
        )
        self._world, self._recorder.process.rank = skrl.config.torch.world_size, skrl.config.torch.rank
        devices.use(self._recorder, agent.device, self._world)
        rollouts = getattr(config, "rollouts", None)
        self._on_policy = rollouts is not None
        rows = rollouts * env.num_envs * self._world if rollouts else None
        batches = getattr(config, "mini_batches", None)
        self.rounds.loops.setup.sample_batch_size = rows
        self.rounds.loops.setup.train_batch_size = rows // batches if rows and batches else None
        self._gauges = GAUGES
        if scale := getattr(config, "entropy_loss_scale", None):
            entropy = (loss(LossType.ENTROPY), Gauge(m.ENTROPY, scale=-1 / scale))
            self._gauges = {**GAUGES, ENTROPY_LOSS: entropy}
        self.rounds.start(tiny=not self._on_policy)
        atexit.unregister(self.stop)
        atexit.register(self.stop)  # only now, so that it comes before the last export
        if self.rounds.loops.reports:
            self._recorder.loop_is_here()

    # Its rounds. Every object of these classes calls these, and an evaluation does as well.

    def _interacts(self, call: Call) -> None:
        if call.instance is not self._agent or self.rounds.paused:
            return
        if not self._on_policy:  # each step is a round, whether it is followed by an update or not
            self.rounds.end()
        if not self.rounds.busy:
            self.rounds.next()
            self.rounds.begin(ROLLOUT)

    def _steps_it(self, call: Call) -> None:
        if call.instance is self._env and self.rounds.busy:
            call.notes["began"] = self._recorder.now()

    def _stepped(self, call: Call) -> None:
        if (began := call.notes.get("began")) is None:
            return
        self._steps += 1
        self._seconds += self._recorder.now() - began
        if self._world == 1:  # those of other ranks are not known here
            self._episodes.add(call.result[2] | call.result[3])

    def _updates_it(self, call: Call) -> None:
        if call.instance is self._agent and not self._updating:  # its class calls its base's
            self._updating = call.notes["its"] = True
            self.rounds.end()
            self.rounds.begin(UPDATE)

    def _updated(self, call: Call) -> None:
        if "its" in call.notes:
            self._updating = False
            self.rounds.end(call.error)
            self._read()

    def _optimized(self, call: Call) -> None:
        if call.args[0] is self._optimizer:
            self._updates += 1

    # Numbers.

    def written(self, call: Call) -> None:
        """Before what was tracked is averaged, written and cleared: of training, or of an evaluation."""
        if self.rounds.paused:
            tracked = call.instance.tracking_data
            self.rounds.loops.evaluated({key: fmean(tracked[key]) for key in EPISODES if tracked.get(key)})
        elif call.instance is self._agent:
            self._read()

    def _read(self) -> None:
        tracked = self._agent.tracking_data
        self._latest.update({key: tracked[key][-1] for key in self._gauges if tracked.get(key)})

    def _counts(self, timed: Timed) -> Counts:
        if timed is UPDATE:
            updates, self._updates = self._updates, 0
            return {"steps": updates or None}
        environments = self._env.num_envs * self._world
        rows = self._steps * environments or None
        # Environments step side by side: each has taken the whole time.
        counts: Counts = {"samples": rows, "steps": rows, "step_seconds": self._seconds * environments or None}
        self._steps, self._seconds = 0, 0.0
        self._episodes.send()
        return {**counts, "episodes": self._episodes.arrived()}

    def _tell(self) -> None:
        """An iteration is about to close."""
        self.rounds.loops.tell(self._latest, self._gauges)
        self._latest = {}
        self.rounds.loops.add(SAMPLE, episodes=self._episodes.arrived())
