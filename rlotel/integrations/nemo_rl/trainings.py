"""NeMo RL's training functions: who the run is, where it goes on, and that it has ended."""

from __future__ import annotations

from rlotel.integrations.configuration import dig
from rlotel.integrations.models import Models
from rlotel.integrations.nemo_rl.iterations import Iterations
from rlotel.integrations.nemo_rl.passes import Passes
from rlotel.integrations.nemo_rl.setup import Setup
from rlotel.integrations.nemo_rl.tables import POLICIES, Training
from rlotel.patching import Call
from rlotel.recorder import Recorder


class Trainings:
    """Follows the functions in `TRAININGS`."""

    def __init__(self, recorder: Recorder, iterations: Iterations, passes: Passes, models: Models) -> None:
        self._recorder = recorder
        self._iterations = iterations
        self._passes = passes
        self._models = models

    def begin(self, training: Training, call: Call) -> None:
        """Before one of them."""
        arguments = call.arguments
        done = dig(arguments.get(training.state), training.step)
        self._begin(arguments.get("master_config"), training.algorithm, arguments.get("task_to_env"))
        self._iterations.next = int(done or 0) + 1
        self._passes.critic = arguments.get("value_model")
        for name in POLICIES:
            if arguments.get(name) is not None:
                self._passes.follow(arguments[name])

    def configured(self, call: Call) -> None:
        """Before the single controller's configuration is checked, in the driver and then in its actor.

        The controller itself is out of reach: it is an actor's class, which Ray sends to the actor as a copy.
        """
        self._begin(call.arguments["master_config"], "GRPO", None)

    def resumed(self, call: Call) -> None:
        """Before the single controller's sampler is told where the run goes on."""
        self._iterations.next = int(call.arguments["resume_from_step"]) + 1

    def _begin(self, config: object, algorithm: str, environments: object) -> None:
        setup = self._iterations.setup = Setup(config, algorithm, environments)
        self._recorder.identify(**setup.identity())
        self._recorder.equip(setup.hardware())
        if setup.saves:
            self._recorder.checkpoints.expect(setup.checkpoint_tier)
        self._models.look_up(setup)

    def end(self, call: Call) -> None:
        """After it: an iteration that was never logged ends as it stands."""
        self._iterations.end(call.error)
