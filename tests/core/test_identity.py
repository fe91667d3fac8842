"""Who the telemetry speaks of: what is expected of it is waited for, until it is told or it takes too long."""

import pytest

from rlotel.config import Config
from rlotel.identity import MOST_WAITS, Identity


def test_nothing_is_waited_for_that_nobody_will_tell() -> None:
    assert not Identity(Config(), {}).waits()


def test_what_is_expected_is_waited_for_until_it_is_told() -> None:
    identity = Identity(Config(), {})
    identity.expect("algorithm")
    identity.offer(system="trl")
    assert identity.waits()
    identity.offer(algorithm="grpo")
    assert not identity.waits()


def test_what_the_user_says_need_not_be_waited_for() -> None:
    identity = Identity(Config(algorithm="grpo"), {})
    identity.expect("algorithm")
    assert not identity.waits()


def test_it_is_not_waited_for_ever() -> None:
    identity = Identity(Config(), {})
    identity.expect("algorithm")
    assert [identity.waits() for _ in range(MOST_WAITS)] == [True] * (MOST_WAITS - 1) + [False]


@pytest.mark.parametrize("fields", [(), ("system", "model")])
def test_one_that_is_settled_has_what_was_told_by_then(fields: tuple[str, ...]) -> None:
    identity = Identity(Config(run_id="run"), {})
    identity.expect(*fields)
    identity.offer(system="trl")
    assert identity.freeze() == {"rl.run.id": "run", "rl.system": "trl"}
    assert not identity.offer(model="late")
