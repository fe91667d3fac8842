"""Samples, episodes, tokens, steps and FLOPs: as many as there were, on however many ranks."""

import pytest

from rlotel.flops import read_config, train_flops
from tests.frameworks.running import Run, phase
from tests.frameworks.trl.conftest import ROWS, summaries, trained

PROMPT = 4
"""Tokens of each prompt: a sum of two digits."""


def test_each_rollout_is_a_sample_and_an_episode(grpo: Run) -> None:
    assert grpo.total("rl.sample.samples") == 4 * 2 * ROWS
    assert grpo.total("rl.sample.episodes") == 4 * 2 * ROWS


def test_tokens_are_those_that_trl_counts_without_evaluations(grpo: Run) -> None:
    tokens = {
        str(point.attributes["rl.token.type"]): point.value for point in grpo.capture.latest("rl.sample.tokens")
    }
    completions = sum(round(line["completions/mean_length"] * 2 * ROWS) for line in trained(grpo))
    assert tokens == {"prompt": 4 * 2 * ROWS * PROMPT, "completion": completions}
    assert grpo.total("rl.sample.tokens") == trained(grpo)[-1]["num_tokens"]


def test_two_ranks_count_once(ranks: Run) -> None:
    assert ranks.total("rl.sample.samples") == 2 * 2 * 2 * ROWS
    assert ranks.total("rl.sample.tokens") == trained(ranks)[-1]["num_tokens"]
    assert ranks.total("rl.train.steps") == 2
    assert ranks.total("rl.train.tokens") == trained(ranks)[-1]["num_tokens"]
    assert ranks.observations("rl.loop.duration") == 2


def test_the_other_rank_tells_how_long_it_took(ranks: Run) -> None:
    names = {point.attributes["rl.phase.name"] for point in ranks.capture.latest("rl.worker.duration")}
    assert names >= {"data", "sample", "ref_logprob", "reward", "train", "evaluate", "checkpoint"}
    for root in ranks.loops:
        assert [phase(node.span) for node in root.children].count("train") == 2


def test_a_step_of_the_optimizer_is_an_iteration(grpo: Run) -> None:
    assert grpo.total("rl.train.steps") == 4
    assert [root.span.attributes["rl.loop.iteration"] for root in grpo.loops] == [1, 2, 3, 4]


def test_an_update_goes_through_all_tokens_of_its_rollouts(grpo: Run) -> None:
    assert grpo.total("rl.train.tokens") == trained(grpo)[-1]["num_tokens"]


def test_an_update_goes_through_rollouts_again_where_iterations_share_them(troubles: Run) -> None:
    spans = {
        (root.span.attributes["rl.loop.iteration"], phase(node.span)): node.span.attributes
        for root in troubles.loops
        for node in root.children
    }
    assert (2, "sample") not in spans
    assert spans[1, "train"]["rl.train.tokens"] == spans[1, "sample"]["rl.sample.tokens"]
    assert spans[2, "train"]["rl.train.tokens"] == spans[1, "sample"]["rl.sample.tokens"]


def test_parts_of_several_generations_add_up(rloo: Run) -> None:
    assert rloo.total("rl.sample.samples") == 3 * 2 * ROWS
    (summary,) = summaries(rloo)
    assert rloo.total("rl.train.tokens") == rloo.total("rl.sample.tokens") == summary["num_tokens"]


def test_flops_are_those_of_the_models_architecture(grpo: Run) -> None:
    architecture = read_config(grpo.folder / "tiny-qwen2-0" / "tiny-qwen2")
    tokens = grpo.total("rl.train.tokens")
    least = train_flops(architecture, [1]).total * tokens  # without attention to others
    most = train_flops(architecture, [PROMPT + 8]).total * tokens / (PROMPT + 8)
    assert least < grpo.total("rl.train.flops") <= most
    passes = grpo.total("rl.phase.flops", **{"rl.phase.name": "ref_logprob"})
    assert grpo.total("rl.train.flops") == pytest.approx(3 * passes)


def test_turns_are_counted_where_there_are_tools(tools: Run) -> None:
    assert tools.total("rl.sample.steps") == 2 * (8 + 8 * 2)  # every second rollout has a second turn
    assert tools.gauge("rl.environment.episode.turns.mean")[-1] == 1.5
    assert tools.total("rl.sample.samples") == tools.total("rl.sample.episodes") == 32


def test_what_a_tool_says_is_read_and_not_sampled(tools: Run) -> None:
    (logged, last) = trained(tools)
    completions = sum(round(line["completions/mean_length"] * 16) for line in (logged, last))
    assert tools.total("rl.sample.tokens", **{"rl.token.type": "completion"}) == completions
    assert tools.total("rl.sample.tokens") == last["num_tokens"]
    assert tools.total("rl.train.tokens") > last["num_tokens"]


def test_asyncgrpo_counts_the_rollouts_it_trains_on(asynchronous: Run) -> None:
    logged = trained(asynchronous)
    assert asynchronous.total("rl.sample.samples") == sum(line["batch/samples_per_step"] for line in logged)
    completions = asynchronous.total("rl.sample.tokens", **{"rl.token.type": "completion"})
    assert completions == sum(line["batch/trained_tokens_per_step"] for line in logged)
    assert asynchronous.total("rl.train.tokens") == sum(line["batch/forwarded_tokens_per_step"] for line in logged)
    # How long prompts are is not known: what rollouts have in common is read once.
    assert not asynchronous.total("rl.sample.tokens", **{"rl.token.type": "prompt"})


def test_trainers_without_rollouts_have_updates_and_no_samples(offline: Run) -> None:
    assert [root.span.attributes["rl.loop.iteration"] for root in offline.loops] == list(range(1, 9))
    for root in offline.loops:
        assert [phase(node.span) for node in root.children] == ["data", "train"]
    assert offline.total("rl.train.steps") == 8
    assert offline.total("rl.sample.samples") == 0
    assert offline.observations("rl.sample.duration") == 0
    assert offline.total("rlotel.errors") == 0
