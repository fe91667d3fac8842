"""Stand-in: what is watched of what makes rollouts."""

from typing import Any

from openrlhf.script import play


class SamplesGenerator:
    def __init__(
        self, strategy: Any, prompts_dataloader: Any, eval_dataloader: Any, tokenizer: Any, vllm_engines: Any
    ) -> None:
        self.args = strategy.args

    def generate_samples(self, **generate_kwargs: Any) -> Any:
        return play("SamplesGenerator.generate_samples", locals())

    def generate_eval_samples(self, **generate_kwargs: Any) -> Any:
        return play("SamplesGenerator.generate_eval_samples", locals())

    def _process_response_into_experience(self, response: Any, **generate_kwargs: Any) -> Any:
        return play("SamplesGenerator._process_response_into_experience", locals())
