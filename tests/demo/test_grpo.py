"""GRPO: the gradient is the loss's, advantages are relative to the group, and the reward really rises."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rlotel.demo import grpo, task
from rlotel.demo.optimizer import Adam
from rlotel.demo.policy import Floats, Policy, Rollouts, Weights
from rlotel.demo.sandbox import Sandbox
from rlotel.demo.settings import Settings

seeds = st.integers(0, 2**32 - 1)
rewards = st.sampled_from([0.0, 0.1, 0.5, 1.0])


@st.composite
def reward_groups(draw: st.DrawFn) -> Floats:
    groups, size = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    values = draw(st.lists(rewards, min_size=groups * size, max_size=groups * size))
    return np.array(values).reshape(groups, size)


@given(reward_groups())
def test_advantages_of_a_group_have_mean_zero_and_deviation_one_or_are_all_zero(groups: Floats) -> None:
    found = grpo.advantages(groups.ravel(), groups.shape[1])
    values = found.values.reshape(groups.shape)
    equal = np.array([len(set(group)) == 1 for group in groups.tolist()])
    assert values.mean(axis=1) == pytest.approx(0.0, abs=1e-9)
    assert values.std(axis=1) == pytest.approx(np.where(equal, 0.0, 1.0))
    assert (values[equal] == 0.0).all()
    assert found.zero_variance_ratio == equal.mean()


@given(reward_groups(), seeds)
def test_advantages_follow_their_samples_when_a_group_is_shuffled(groups: Floats, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(groups.shape[1])
    plain = grpo.advantages(groups.ravel(), groups.shape[1]).values.reshape(groups.shape)
    shuffled = grpo.advantages(groups[:, order].ravel(), groups.shape[1]).values.reshape(groups.shape)
    np.testing.assert_allclose(shuffled, plain[:, order], atol=1e-9)


@given(reward_groups(), st.sampled_from([0.5, 2.0, 8.0]), st.sampled_from([-1.0, 0.0, 2.0]))
def test_advantages_know_no_scale_and_no_offset_of_the_reward(groups: Floats, scale: float, offset: float) -> None:
    plain = grpo.advantages(groups.ravel(), groups.shape[1]).values
    moved = grpo.advantages(groups.ravel() * scale + offset, groups.shape[1]).values
    np.testing.assert_allclose(moved, plain, atol=1e-9)


def moved_policy(policy: Policy, rng: np.random.Generator, distance: float) -> Policy:
    """A copy some way off, so that ratios leave 1 and some are clipped."""
    other = policy.copy()
    for name, value in other.parameters.items():
        other.parameters[name] = value + distance * rng.standard_normal(value.shape)
    return other


def batch(seed: int) -> tuple[Policy, Rollouts, Floats, Floats]:
    """A policy, rollouts of an older one, advantages, and a reference's log-probabilities."""
    rng = np.random.default_rng(seed)
    sampler = Policy(rng, max_tokens=3, hidden=6, embedding=3)
    rollouts = sampler.sample(task.prompts(4, rng), 4, rng)
    advantage = grpo.advantages(rng.choice([0.0, 0.1, 1.0], rollouts.samples), 4).values
    reference = moved_policy(sampler, rng, 0.2).logprobs(rollouts)
    return moved_policy(sampler, rng, 0.2), rollouts, advantage, reference


def slope(function: Callable[[float], float], distance: float = 1e-6) -> float:
    return (function(distance) - function(-distance)) / (2 * distance)


@given(seeds)
@hypothesis_settings(derandomize=True)
def test_the_gradient_is_that_of_the_loss_by_finite_differences(seed: int) -> None:
    policy, rollouts, advantage, reference = batch(seed)
    settings = Settings(kl_coefficient=0.3, clip=0.1)
    _, gradient = grpo.loss(policy, rollouts, advantage, reference, settings)
    rng = np.random.default_rng(seed)
    assert gradient.keys() == policy.parameters.keys()
    for name, value in policy.weights().items():
        direction = rng.standard_normal(value.shape)

        def total(
            distance: float, name: str = name, value: Floats = value, direction: Floats = direction
        ) -> float:
            nearby = policy.copy()
            nearby.parameters[name] = value + distance * direction
            return grpo.loss(nearby, rollouts, advantage, reference, settings)[0].total

        assert slope(total) == pytest.approx(float((gradient[name] * direction).sum()), rel=1e-4, abs=1e-6)


def test_some_ratios_of_the_gradient_test_are_clipped() -> None:
    ratios = [grpo.loss(*batch(seed), Settings(clip=0.1))[0].clip_ratio for seed in range(10)]
    assert 0 < min(ratios) <= max(ratios) < 1


@given(seeds)
def test_a_policy_that_has_not_moved_has_no_divergence_and_clips_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy = Policy(rng, max_tokens=3, hidden=6)
    rollouts = policy.sample(task.prompts(4, rng), 4, rng)
    rollouts = replace(rollouts, logprobs=policy.logprobs(rollouts))
    advantage = np.ones(rollouts.samples)
    found, _ = grpo.loss(policy, rollouts, advantage, rollouts.logprobs, Settings())
    assert (found.kl_divergence, found.clip_ratio, found.policy) == (0.0, 0.0, -1.0)
    assert 0 < found.entropy <= np.log(len(task.VOCABULARY)) + 1e-9


@given(seeds)
def test_the_divergence_is_never_negative(seed: int) -> None:
    assert grpo.loss(*batch(seed), Settings())[0].kl_divergence >= 0


def learner(rng: np.random.Generator, settings: Settings) -> Adam:
    policy = Policy(rng, max_tokens=settings.max_tokens, hidden=settings.hidden)
    return Adam(policy, learning_rate=settings.learning_rate, max_grad_norm=settings.max_grad_norm)


QUICK = Settings(iterations=24, prompts=96, hidden=64, learning_rate=5e-3)


def train(sandbox: Sandbox, settings: Settings, seed: int) -> list[tuple[float, grpo.Update]]:
    """Mean reward and update of each iteration."""
    rng = np.random.default_rng(seed)
    optimizer = learner(rng, settings)
    sampler, reference = optimizer.policy.copy(), optimizer.policy.copy()
    curve = []
    for _ in range(settings.iterations):
        rollouts = sampler.sample(task.prompts(settings.prompts, rng), settings.group_size, rng)
        reward = sandbox.verify(rollouts)
        advantage = grpo.advantages(reward, settings.group_size).values
        update = grpo.update(optimizer, rollouts, advantage, reference.logprobs(rollouts), settings, rng)
        sampler.load(optimizer.policy.weights())
        curve.append((float(reward.mean()), update))
    return curve


def test_the_reward_rises_and_the_same_seed_gives_the_same_curve_to_the_bit() -> None:
    with Sandbox() as sandbox:
        first, second = train(sandbox, QUICK, seed=1), train(sandbox, QUICK, seed=1)
    assert first == second
    reward = [mean for mean, _ in first]
    quarter = len(reward) // 4
    assert np.mean(reward[-quarter:]) > np.mean(reward[:quarter]) + 0.2


def test_an_update_counts_its_steps_tokens_and_flops() -> None:
    settings = Settings(prompts=4, group_size=4, hidden=8, epochs=3, minibatches=2)
    rng = np.random.default_rng(1)
    optimizer = learner(rng, settings)
    rollouts = optimizer.policy.sample(task.prompts(4, rng), 4, rng)
    found = grpo.update(optimizer, rollouts, np.ones(16), rollouts.logprobs, settings, rng)
    assert (found.steps, found.skipped_steps, found.tokens, found.flops) == (
        6,
        0,
        3 * (rollouts.prompt_tokens + rollouts.completion_tokens),
        3 * optimizer.policy.flops(rollouts.completion_tokens, train=True),
    )


def test_a_step_whose_gradient_is_not_finite_is_skipped_and_the_policy_survives() -> None:
    settings = Settings(prompts=4, group_size=4, hidden=8, epochs=1, minibatches=2)
    rng = np.random.default_rng(1)
    optimizer = learner(rng, settings)
    before = optimizer.policy.copy()
    rollouts = before.sample(task.prompts(4, rng), 4, rng)
    poisoned = np.full(16, np.nan)
    found = grpo.update(optimizer, rollouts, poisoned, rollouts.logprobs, settings, rng)
    assert (found.steps, found.skipped_steps, np.isnan(found.loss.policy)) == (0, 2, True)
    assert optimizer.policy.logprobs(rollouts).tolist() == before.logprobs(rollouts).tolist()


def test_a_gradient_beyond_the_limit_moves_no_further_than_one_at_the_limit() -> None:
    def moved(scale: float) -> tuple[float, Weights]:
        rng = np.random.default_rng(1)
        optimizer = learner(rng, Settings(hidden=8))
        direction = {name: np.ones_like(value) for name, value in optimizer.policy.parameters.items()}
        length = sum(value.size for value in direction.values()) ** 0.5
        norm, _ = optimizer.step({name: scale * value / length for name, value in direction.items()})
        return norm, optimizer.policy.parameters

    (long, far), (limit, near) = moved(50.0), moved(1.0)
    assert [long, limit] == pytest.approx([50.0, 1.0])
    for name, value in far.items():
        np.testing.assert_allclose(value, near[name], atol=1e-12)


def test_a_restored_learner_goes_on_as_if_nothing_had_happened() -> None:
    rng = np.random.default_rng(1)
    settings = Settings(hidden=8)
    optimizer = learner(rng, settings)

    def step(with_optimizer: Adam, seed: int) -> None:
        chance = np.random.default_rng(seed)
        with_optimizer.step(
            {name: chance.standard_normal(value.shape) for name, value in optimizer.policy.parameters.items()}
        )

    step(optimizer, 1)
    resumed = learner(rng, settings)
    resumed.policy.load(optimizer.policy.weights())
    resumed.restore(optimizer.state())
    for seed in (2, 3):
        step(optimizer, seed)
        step(resumed, seed)
    found = {name: value.tolist() for name, value in resumed.policy.parameters.items()}
    assert found == {name: value.tolist() for name, value in optimizer.policy.parameters.items()}
