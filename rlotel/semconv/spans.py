# Generated from semconv/model/*.yaml by `python semconv/generate.py`. Do not edit.
"""Every span of the semantic model."""

from __future__ import annotations

from rlotel.semconv import attributes as a
from rlotel.semconv.types import Span, Use

LOOP = Span(
    name="rl.loop",
    brief="One iteration: always the root of its trace.",
    origin="proposal",
    stability="development",
    attributes=(
        Use(a.LOOP_ITERATION, "required"),
        Use(a.SAMPLE_BATCH_SIZE, "recommended"),
        Use(a.TRAIN_BATCH_SIZE, "recommended"),
        Use(a.AGENT_COUNT, "opt_in"),
        Use(a.ERROR_TYPE, "conditionally_required"),
    ),
)
SAMPLE = Span(
    name="rl.sample",
    brief="Making rollouts, or waiting for them.",
    origin="proposal",
    stability="development",
    attributes=(
        Use(a.SAMPLE_KIND, "required"),
        Use(a.LOOP_ITERATION, "recommended"),
        Use(a.SAMPLE_BATCH_SIZE, "recommended"),
        Use(a.SAMPLE_SAMPLES, "recommended"),
        Use(a.SAMPLE_EPISODES, "recommended"),
        Use(a.SAMPLE_TOKENS, "recommended"),
        Use(a.ERROR_TYPE, "conditionally_required"),
    ),
)
REWARD = Span(
    name="rl.reward",
    brief="Scoring: a child of the loop, or of the sample phase it happens in.",
    origin="proposal",
    stability="development",
    attributes=(
        Use(a.LOOP_ITERATION, "recommended"),
        Use(a.REWARD_SANDBOX, "recommended"),
        Use(a.ERROR_TYPE, "conditionally_required"),
    ),
)
TRAIN = Span(
    name="rl.train",
    brief="The learner's update.",
    origin="proposal",
    stability="development",
    attributes=(
        Use(a.LOOP_ITERATION, "recommended"),
        Use(a.ROLE, "conditionally_required"),
        Use(a.TRAIN_BATCH_SIZE, "recommended"),
        Use(a.TRAIN_STEPS, "recommended"),
        Use(a.TRAIN_TOKENS, "recommended"),
        Use(a.ERROR_TYPE, "conditionally_required"),
    ),
)
SYNC = Span(
    name="rl.sync",
    brief="New weights to the rollout engines.",
    origin="proposal",
    stability="development",
    attributes=(
        Use(a.LOOP_ITERATION, "recommended"),
        Use(a.ROLE, "conditionally_required"),
        Use(a.SYNC_SOURCE, "recommended"),
        Use(a.SYNC_DESTINATION, "recommended"),
        Use(a.SYNC_BYTES, "opt_in"),
        Use(a.ERROR_TYPE, "conditionally_required"),
    ),
)
PHASE = Span(
    name="rl.phase",
    brief="A phase that is none of the five.",
    origin="rlotel",
    stability="development",
    attributes=(
        Use(a.PHASE_NAME, "required"),
        Use(a.LOOP_ITERATION, "recommended"),
        Use(a.ROLE, "conditionally_required"),
        Use(a.ERROR_TYPE, "conditionally_required"),
    ),
)
CHECKPOINT = Span(
    name="rl.checkpoint",
    brief="One operation on a checkpoint.",
    origin="rlotel",
    stability="development",
    attributes=(
        Use(a.CHECKPOINT_OPERATION, "required"),
        Use(a.LOOP_ITERATION, "recommended"),
        Use(a.CHECKPOINT_TIER, "recommended"),
        Use(a.CHECKPOINT_BLOCKING, "recommended"),
        Use(a.ERROR_TYPE, "conditionally_required"),
    ),
)

ALL: tuple[Span, ...] = (
    LOOP,
    SAMPLE,
    REWARD,
    TRAIN,
    SYNC,
    PHASE,
    CHECKPOINT,
)
BY_NAME = {span.name: span for span in ALL}
