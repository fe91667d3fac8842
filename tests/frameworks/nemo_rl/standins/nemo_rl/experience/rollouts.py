"""Functions that make rollouts and score them."""

from collections.abc import AsyncIterator
from typing import Any

from nemo_rl import script


def calculate_rewards(
    batch: Any,
    task_to_env: Any,
) -> Any:
    return script.run("calculate_rewards", locals())


def run_multi_turn_rollout(
    policy_generation: Any,
    input_batch: Any,
    tokenizer: Any,
    task_to_env: Any,
    max_seq_len: Any,
    max_rollout_turns: Any = 999999,
    greedy: Any = False,
    deduplicate_multimodal_data: Any = False,
) -> Any:
    return script.run("run_multi_turn_rollout", locals())


def run_async_multi_turn_rollout(
    policy_generation: Any,
    input_batch: Any,
    tokenizer: Any,
    task_to_env: Any,
    max_seq_len: Any,
    max_rollout_turns: Any = 999999,
    greedy: Any = False,
    deduplicate_multimodal_data: Any = False,
) -> Any:
    return script.run("run_async_multi_turn_rollout", locals())


async def run_async_multi_turn_rollout_groups(
    policy_generation: Any,
    input_batch: Any,
    tokenizer: Any,
    task_to_env: Any,
    max_seq_len: Any,
    num_generations: Any,
    max_rollout_turns: Any = 999999,
    greedy: Any = False,
    deduplicate_multimodal_data: Any = False,
) -> AsyncIterator[Any]:
    for result in script.run("run_async_multi_turn_rollout_groups", locals()):
        yield result


async def run_async_nemo_gym_rollout(
    policy_generation: Any,
    input_batch: Any,
    tokenizer: Any,
    task_to_env: Any,
    generation_config: Any,
    num_generations: Any,
    log_full_result_tables: Any,
    max_seq_len: Any = None,
    max_rollout_turns: Any = None,
    greedy: Any = False,
    effort_config: Any = None,
    reward_penalty_config: Any = None,
    thinking_tags: Any = None,
    mask_env_flagged_samples: Any = True,
    returns_entire_batch: Any = False,
    sampling_params: Any = None,
    deduplicate_multimodal_data: Any = False,
    debug_payload_metrics: Any = False,
) -> AsyncIterator[Any]:
    for result in script.run("run_async_nemo_gym_rollout", locals()):
        yield result


def run_nemo_gym_rollout_sync(
    policy_generation: Any,
    input_batch: Any,
    tokenizer: Any,
    task_to_env: Any,
    generation_config: Any,
    log_full_result_tables: Any,
    max_seq_len: Any = None,
    max_rollout_turns: Any = None,
    greedy: Any = False,
    effort_config: Any = None,
    reward_penalty_config: Any = None,
    thinking_tags: Any = None,
    sampling_params: Any = None,
    mask_env_flagged_samples: Any = True,
    deduplicate_multimodal_data: Any = False,
    debug_payload_metrics: Any = False,
) -> Any:
    return script.run("run_nemo_gym_rollout_sync", locals())
