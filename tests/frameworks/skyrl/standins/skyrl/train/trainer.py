"""The synchronous trainer."""

from typing import Any

from . import script


class RayPPOTrainer:
    def __init__(
        self,
        cfg: Any,
        tracker: Any,
        tokenizer: Any,
        train_dataset: Any,
        inference_engine_client: Any,
        generator: Any,
        colocate_pg: Any = None,
        eval_dataset: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.cfg = cfg
        self.tracker = tracker
        self.generator = generator
        self.dispatch: Any = None
        self.global_step = 0

    async def eval(self, vllm_metrics_scraper: Any = None) -> Any:
        return script.run("eval", locals())

    async def train(self) -> Any:
        return script.run("train", locals())

    def fwd_logprobs_values_reward(self, training_input: Any) -> Any:
        return script.run("fwd_logprobs_values_reward", locals())

    def _execute_forward_pass(self, model: str, data_fwd_pass: Any, key: str, mini_batch_boundaries: Any) -> Any:
        return script.run("_execute_forward_pass", locals())

    def load_checkpoints(self) -> Any:
        return script.run("load_checkpoints", locals())
