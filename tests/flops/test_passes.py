"""Forward, training and generation passes obey the identities of the matrix products they stand for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel import flops

Config = dict[str, Any]

LENGTHS = st.lists(st.integers(0, 60), max_size=8)
TURNS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=6)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dense = {
        "model_type": "mistral",
        "hidden_size": draw(st.integers(1, 9)),
        "intermediate_size": draw(st.integers(1, 9)),
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_attention_heads": kv_heads * group,
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.integers(1, 5)),
        "vocab_size": draw(st.integers(1, 9)),
        "sliding_window": draw(st.none() | st.integers(1, 40)),
    }
    if draw(st.booleans()):
        return dense
    experts = draw(st.integers(1, 6))
    mixture = {"num_local_experts": experts, "num_experts_per_tok": draw(st.integers(1, experts))}
    return {**dense, **mixture, "model_type": "mixtral"}


class _Counter:
    """Runs a model as matrix products that are only counted: an account independent of the formulas."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.count = 0

    def product(self, rows: int, inner: int, columns: int) -> None:
        self.count += 2 * rows * inner * columns

    def forward_one_token(self, position: int) -> None:
        c = self.config
        hidden, heads, kv_heads, dim = (
            c[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
        )
        seen = min(position + 1, c["sliding_window"] or position + 1)
        for _ in range(c["num_hidden_layers"]):
            for columns in (heads * dim, kv_heads * dim, kv_heads * dim):
                self.product(1, hidden, columns)
            for _ in range(heads):
                self.product(1, dim, seen)
                self.product(1, seen, dim)
            self.product(1, heads * dim, hidden)
            if "num_local_experts" in c:
                self.product(1, hidden, c["num_local_experts"])
            for _ in range(c.get("num_experts_per_tok", 1)):
                self.product(1, hidden, c["intermediate_size"])
                self.product(1, hidden, c["intermediate_size"])
                self.product(1, c["intermediate_size"], hidden)

    def logits(self) -> None:
        self.product(1, self.config["hidden_size"], self.config["vocab_size"])


@given(configs(), LENGTHS)
def test_forward_equals_a_count_of_every_matrix_product(config: Config, lengths: list[int]) -> None:
    counter = _Counter(config)
    for length in lengths:
        for position in range(length):
            counter.forward_one_token(position)
            counter.logits()
    assert flops.forward_flops(flops.read_config(config), lengths).total == counter.count


@given(configs(), TURNS)
def test_generation_equals_a_count_of_prefill_and_of_every_decode_step(
    config: Config, turns: list[tuple[int, int]]
) -> None:
    counter = _Counter(config)
    for prompt, response in turns:
        for position in range(prompt):
            counter.forward_one_token(position)
        counter.logits()
        for step in range(response - 1):
            counter.forward_one_token(prompt + step)
            counter.logits()
    generation = flops.generation_flops(flops.read_config(config), *_columns(turns))
    assert generation.total == counter.count


@given(configs(), TURNS)
def test_generation_is_one_causal_forward_with_logits_for_the_response(
    config: Config, turns: list[tuple[int, int]]
) -> None:
    architecture = flops.read_config(config)
    whole = [prompt + response - 1 for prompt, response in turns]
    logits = sum(response for _, response in turns)
    prompts, responses = _columns(turns)
    generation = flops.generation_flops(architecture, prompts, responses)
    assert generation == flops.forward_flops(architecture, whole, logits=logits)
    assert generation == flops.prefill_flops(architecture, prompts) + flops.decode_flops(
        architecture, prompts, responses
    )


@given(configs(), LENGTHS.flatmap(lambda lengths: st.tuples(st.just(lengths), st.permutations(lengths))))
def test_the_order_of_the_sequences_changes_nothing(config: Config, both: tuple[list[int], list[int]]) -> None:
    architecture = flops.read_config(config)
    assert flops.train_flops(architecture, both[0]) == flops.train_flops(architecture, both[1])


@given(configs(), LENGTHS, st.integers(0, 8), st.sampled_from(["causal", "full"]))
def test_a_batch_counts_as_much_as_its_micro_batches(
    config: Config, lengths: list[int], cut: int, convention: flops.Convention
) -> None:
    architecture = flops.read_config(config)
    parts = [
        flops.train_flops(architecture, part, convention=convention) for part in (lengths[:cut], lengths[cut:])
    ]
    assert flops.train_flops(architecture, lengths, convention=convention) == parts[0] + parts[1]


@given(configs(), LENGTHS)
def test_a_packed_row_counts_as_its_sequences_and_never_more_than_one_long_one(
    config: Config, lengths: list[int]
) -> None:
    architecture = flops.read_config(config)
    packed = flops.forward_flops(architecture, lengths)
    one_by_one = [flops.forward_flops(architecture, [length]) for length in lengths]
    assert packed == sum(one_by_one, flops.Flops())
    assert packed.total <= flops.forward_flops(architecture, [sum(lengths)]).total


@given(configs(), LENGTHS, st.sampled_from(["causal", "full"]))
def test_training_is_three_forwards(config: Config, lengths: list[int], convention: flops.Convention) -> None:
    architecture = flops.read_config(config)
    forward = flops.forward_flops(architecture, lengths, convention=convention)
    assert flops.train_flops(architecture, lengths, convention=convention) == forward * 3


@given(configs(), LENGTHS)
def test_the_full_convention_differs_only_in_the_attention_core_and_is_never_less(
    config: Config, lengths: list[int]
) -> None:
    architecture = flops.read_config(config)
    causal = flops.forward_flops(architecture, lengths)
    full = flops.forward_flops(architecture, lengths, convention="full")
    extra = full.attention_core - causal.attention_core
    assert extra >= 0
    assert full == causal + flops.Flops(attention_core=extra)


@given(configs(), LENGTHS)
def test_grouped_query_attention_is_never_dearer_than_one_key_head_per_query_head(
    config: Config, lengths: list[int]
) -> None:
    multi_head = {**config, "num_key_value_heads": config["num_attention_heads"]}
    grouped, every = (flops.forward_flops(flops.read_config(c), lengths) for c in (config, multi_head))
    assert grouped.attention_projections <= every.attention_projections
    assert grouped.attention_core == every.attention_core


@given(configs().filter(lambda config: config["model_type"] == "mixtral"), LENGTHS, st.integers(1, 50))
def test_idle_experts_cost_nothing_but_their_share_of_the_router(
    config: Config, lengths: list[int], more: int
) -> None:
    larger = {**config, "num_local_experts": config["num_local_experts"] + more}
    small, large = (flops.forward_flops(flops.read_config(c), lengths) for c in (config, larger))
    routing = 2 * sum(lengths) * config["num_hidden_layers"] * config["hidden_size"] * more
    assert large == small + flops.Flops(router=routing)


@given(configs(), TURNS)
def test_a_prefix_cache_saves_all_of_a_prompt_but_its_last_token(
    config: Config, turns: list[tuple[int, int]]
) -> None:
    architecture = flops.read_config(config)
    prompts, _ = _columns(turns)
    cached = flops.prefill_flops(architecture, prompts, cached=prompts)
    shorter = [prompt - 1 for prompt in prompts]
    saved = flops.forward_flops(architecture, shorter, logits=0)
    assert cached + saved == flops.prefill_flops(architecture, prompts)


def _columns(turns: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [prompt for prompt, _ in turns], [response for _, response in turns]


_TINY = flops.read_config(
    {
        "model_type": "llama",
        "hidden_size": 4,
        "intermediate_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "vocab_size": 4,
    }
)


def test_a_critic_without_logits_costs_no_lm_head() -> None:
    forward = flops.forward_flops(_TINY, [5])
    assert flops.forward_flops(_TINY, [5], logits=0) + flops.Flops(lm_head=forward.lm_head) == forward


def test_an_empty_response_costs_its_prefill() -> None:
    assert flops.generation_flops(_TINY, [5], [0]) == flops.prefill_flops(_TINY, [5])


def test_impossible_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 0 tokens"):
        flops.forward_flops(_TINY, [3, -1])
    with pytest.raises(ValueError, match="logits is 4, but there are 3 tokens"):
        flops.forward_flops(_TINY, [3], logits=4)
    with pytest.raises(ValueError, match="1 prompts but 2 responses"):
        flops.generation_flops(_TINY, [3], [1, 2])
    with pytest.raises(ValueError, match="1 prompts but 2 numbers of cached tokens"):
        flops.prefill_flops(_TINY, [3], cached=[1, 2])
    with pytest.raises(ValueError, match="a prompt of 3 tokens, 4 of them cached"):
        flops.prefill_flops(_TINY, [3], cached=[4])
    with pytest.raises(ValueError, match="a prompt of 0 tokens"):
        flops.prefill_flops(_TINY, [0])


def test_an_unknown_convention_is_refused() -> None:
    with pytest.raises(ValueError, match="not causal or full"):
        flops.forward_flops(_TINY, [3], convention="palm")  # type: ignore[arg-type]
