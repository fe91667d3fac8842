#!/bin/sh
# GRPO with OpenRLHF on one machine with 8 GPUs, 4 of them for the policy and its reference, 4 for vLLM.
# RLOTEL_ENDPOINT says where to send telemetry; without it, it goes to a file.
set -eu
exec rlotel run -- python -m openrlhf.cli.train_ppo_ray \
    --algo.advantage.estimator group_norm \
    --actor.model_name_or_path Qwen/Qwen3-0.6B \
    --actor.num_gpus_per_node 4 \
    --ref.num_gpus_per_node 4 --train.colocate_actor_ref \
    --vllm.num_engines 4 \
    --data.prompt_dataset openai/gsm8k@main --data.input_key question --data.label_key answer \
    --reward.remote_url "$(dirname "$0")/reward.py" \
    --rollout.batch_size 64 --rollout.n_samples_per_prompt 8 \
    --train.batch_size 128 \
    --ckpt.save_steps 20 \
    "$@"
