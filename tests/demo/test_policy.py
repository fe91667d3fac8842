"""The demo's policy and task: what is sampled, counted and transferred, and that chance has one source."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel.demo import task
from rlotel.demo.policy import Policy, Rollouts

seeds = st.integers(0, 2**32 - 1)


def small_policy(rng: np.random.Generator, max_tokens: int = 4) -> Policy:
    return Policy(rng, max_tokens=max_tokens, hidden=8, embedding=3)


def rollouts_of(texts: list[str], max_tokens: int = 4) -> Rollouts:
    """Rollouts of one prompt with these completions."""
    completions = np.full((len(texts), max_tokens), task.END)
    for row, text in zip(completions, texts, strict=True):
        row[: len(text)] = task.encode(text)
    return Rollouts(
        prompts=np.repeat(task.encode("3+4=")[None], len(texts), axis=0),
        completions=completions,
        lengths=np.array([len(text) for text in texts]),
        logprobs=np.zeros(completions.shape),
        group_size=len(texts),
    )


@given(seeds)
def test_every_prompt_is_a_sum_or_difference_with_an_answer_of_one_or_two_digits(seed: int) -> None:
    for prompt in task.prompts(50, np.random.default_rng(seed)):
        left, operator, right, equals = list(task.decode(prompt))
        answer = int(left) + int(right) if operator == "+" else int(left) - int(right)
        assert (operator in "+-", equals, 0 <= answer <= 18) == (True, "=", True)


@given(st.text(task.VOCABULARY))
def test_text_survives_encoding(text: str) -> None:
    assert task.decode(task.encode(text)) == text


def test_a_character_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="substring not found"):
        task.encode("3*4=")


@given(seeds)
def test_next_token_probabilities_add_up_to_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    contexts = rng.integers(0, len(task.VOCABULARY) + 1, size=(20, task.PROMPT_TOKENS + 3))
    probabilities = np.exp(small_policy(rng).forward(contexts).logprobs)
    assert probabilities.sum(axis=1) == pytest.approx(1.0)


@given(seeds, st.integers(1, 5), st.integers(1, 4), st.integers(1, 5))
def test_a_completion_ends_at_its_first_end_mark_or_is_truncated(
    seed: int, prompts: int, group_size: int, max_tokens: int
) -> None:
    rng = np.random.default_rng(seed)
    asked = task.prompts(prompts, rng)
    rollouts = small_policy(rng, max_tokens).sample(asked, group_size, rng)
    texts = rollouts.texts()
    assert [prompt for prompt, _ in texts] == [task.decode(p) for p in asked for _ in range(group_size)]
    for (_, completion), truncated in zip(texts, rollouts.truncated, strict=True):
        assert completion.find(".") == (-1 if truncated else len(completion) - 1)
        assert len(completion) == max_tokens or not truncated


@given(seeds)
def test_sampled_log_probabilities_are_those_of_the_policy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy = small_policy(rng)
    rollouts = policy.sample(task.prompts(6, rng), 3, rng)
    np.testing.assert_allclose(rollouts.logprobs, policy.logprobs(rollouts), atol=1e-12)


def test_tokens_are_drawn_as_often_as_the_policy_says() -> None:
    rng = np.random.default_rng(5)
    policy = small_policy(rng, max_tokens=1)
    policy.parameters["output_bias"] = rng.standard_normal(len(task.VOCABULARY))
    draws = 20_000
    rollouts = policy.sample(task.encode("3+4=")[None], draws, rng)
    frequency = np.bincount(rollouts.completions[:, 0], minlength=len(task.VOCABULARY)) / draws
    expected = np.exp(policy.forward(task.encode("3+4=")[None]).logprobs[0])
    assert frequency == pytest.approx(expected, abs=5 * 0.5 / draws**0.5)


def test_counts_are_of_real_tokens_only() -> None:
    rollouts = rollouts_of(["7.", "12.", "1234"])
    found = (
        rollouts.samples,
        rollouts.prompt_tokens,
        rollouts.completion_tokens,
        rollouts.truncated.tolist(),
        rollouts.texts(),
    )
    expected_texts = [("3+4=", "7."), ("3+4=", "12."), ("3+4=", "1234")]
    assert found == (3, 12, 9, [False, False, True], expected_texts)


@given(seeds)
def test_what_comes_after_a_token_does_not_change_its_probability(seed: int) -> None:
    policy = small_policy(np.random.default_rng(seed))
    short, long = policy.logprobs(rollouts_of(["1."])), policy.logprobs(rollouts_of(["1234"]))
    assert short[0, 0] == pytest.approx(long[0, 0])
    rollouts = rollouts_of(["1."])
    padded = replace(rollouts, completions=np.where(rollouts.mask, rollouts.completions, 3))
    assert policy.logprobs(padded).tolist() == short.tolist()


def test_loaded_weights_are_a_copy_and_their_bytes_are_counted() -> None:
    learner, sampler = (small_policy(np.random.default_rng(seed)) for seed in (1, 2))
    transferred = sampler.load(learner.weights())
    rollouts = rollouts_of(["12."])
    before = learner.logprobs(rollouts)
    learner.parameters["output_bias"] += np.arange(len(task.VOCABULARY))
    assert transferred == sum(value.nbytes for value in learner.parameters.values())
    assert sampler.logprobs(rollouts).tolist() == before.tolist()


def test_a_copy_keeps_its_weights_while_the_policy_moves() -> None:
    policy = small_policy(np.random.default_rng(1))
    reference, rollouts = policy.copy(), rollouts_of(["12."])
    before = policy.logprobs(rollouts)
    policy.parameters["output_bias"] += np.arange(len(task.VOCABULARY))
    assert reference.logprobs(rollouts).tolist() == before.tolist()
    assert policy.logprobs(rollouts).tolist() != before.tolist()


def test_weights_of_another_shape_are_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="make both with the same arguments"):
        small_policy(rng).load(small_policy(rng, max_tokens=5).weights())


def test_flops_are_two_per_weight_and_token_and_training_costs_three_times_as_much() -> None:
    policy = small_policy(np.random.default_rng(1))
    products = 7 * 3 * 8 + 8 * 8 + 8 * len(task.VOCABULARY)
    assert policy.flops(10) == 2 * products * 10
    assert policy.flops(10, train=True) == 6 * products * 10


def test_the_same_seed_samples_the_same_and_global_generators_do_not_move() -> None:
    def run() -> tuple[list[tuple[str, str]], bytes]:
        rng = np.random.default_rng(3)
        rollouts = small_policy(rng).sample(task.prompts(20, rng), 4, rng)
        return rollouts.texts(), rollouts.logprobs.tobytes()

    python, numpy = random.getstate(), repr(np.random.get_state())
    assert run() == run()
    assert (random.getstate(), repr(np.random.get_state())) == (python, numpy)
