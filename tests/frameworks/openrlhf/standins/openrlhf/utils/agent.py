"""Stand-in: what is watched of agents."""

from typing import Any

from openrlhf.script import play


class MultiTurnAgentExecutor:
    def __init__(self, agent_instance_cls: Any) -> None:
        self.agent_instance_cls = agent_instance_cls

    async def execute(
        self, prompt: Any, label: Any, sampling_params: Any, max_length: int, hf_tokenizer: Any, llm_engine: Any
    ) -> Any:
        return await play("MultiTurnAgentExecutor.execute", locals())


class SingleTurnAgentExecutor:
    def __init__(self, remote_rm_url: Any = None) -> None:
        pass

    async def execute(
        self, prompt: Any, label: Any, sampling_params: Any, max_length: int, hf_tokenizer: Any, llm_engine: Any
    ) -> Any:
        return await play("SingleTurnAgentExecutor.execute", locals())

    async def _fetch_rewards_via_func(self, queries_list: Any, prompts_list: Any, labels_list: Any) -> Any:
        return await play("SingleTurnAgentExecutor._fetch_rewards_via_func", locals())

    async def _fetch_rewards_via_http(self, queries_list: Any, prompts_list: Any, labels_list: Any) -> Any:
        return await play("SingleTurnAgentExecutor._fetch_rewards_via_http", locals())
