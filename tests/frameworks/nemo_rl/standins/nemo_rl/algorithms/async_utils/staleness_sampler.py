"""What the single controller chooses rollouts with."""

from nemo_rl import script


class BaseSampler:
    def set_dispatch_index(self, resume_from_step: int) -> None:
        script.run("set_dispatch_index", locals())
