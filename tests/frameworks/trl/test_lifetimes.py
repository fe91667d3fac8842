"""What a trainer learns is not touched, nothing of it is kept, and sessions may begin and end while one trains."""

import pytest

from tests.frameworks.running import Run
from tests.frameworks.trl.conftest import Train


@pytest.fixture(scope="module")
def shown(train: Train) -> Run:
    return train("lifetimes.py")


@pytest.mark.parametrize(
    "promise",
    [
        "learnt_the_same_to_the_bit",
        "nothing_of_a_trainer_is_kept",
        "two_trainers_that_take_turns_are_no_restarts",
        "tags_of_the_users_own_make_no_difference",
        "an_evaluation_of_what_cannot_be_read_is_one_and_the_next_trainer_is_followed",
        "rollouts_that_cannot_be_counted_end_all_the_same",
        "a_session_that_ends_in_an_iteration_leaves_nothing_current",
        "a_session_that_begins_in_an_iteration_follows_the_next_training",
    ],
)
def test_it_is_shown_that(shown: Run, promise: str) -> None:
    (line,) = [line for line in shown.logged if line["shown"] == promise]
    assert line["failure"] is None, line["failure"]
