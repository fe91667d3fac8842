"""One process of a node reads; all of them may say what they do."""

import os
import signal
from pathlib import Path

import pytest

from rlotel.collectors.election import Held, Node, both
from tests.conftest import Program


def test_one_is_elected_and_the_next_when_it_lets_go(tmp_path: Path) -> None:
    first, second = Node("run", tmp_path), Node("run", tmp_path)
    seat = first.elect()
    assert seat is not None
    assert second.elect() is None
    seat.release()
    seat.release()
    assert second.elect() is not None


def test_runs_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    seats = Node("one", tmp_path).elect(), Node("other", tmp_path).elect()
    assert None not in seats


def test_a_process_that_dies_lets_go(tmp_path: Path, program: Program) -> None:
    program(
        f"""
        import os
        from pathlib import Path
        from rlotel.collectors.election import Node
        node = Node("run", Path({str(tmp_path)!r}))
        held = node.elect(), node.claim("trainer", ("GPU-1",))
        assert None not in held and node.roles() == {{"GPU-1": "trainer"}}
        os._exit(0)
        """
    )
    node = Node("run", tmp_path)
    assert node.roles() == {}
    assert node.elect() is not None
    assert not list(tmp_path.rglob("*.role"))


def test_a_forked_child_that_outlives_the_holder_does_not_keep_the_lock(tmp_path: Path, program: Program) -> None:
    out = program(
        f"""
        import os, time
        from pathlib import Path
        from rlotel.collectors.election import Node
        seat = Node("run", Path({str(tmp_path)!r})).elect()
        out, into = os.pipe()
        child = os.fork()
        if not child:
            seat.disown()
            os.write(into, b".")
            for stream in (0, 1, 2):
                os.close(stream)
            time.sleep(600)
        os.read(out, 1)
        print(child, flush=True)
        os._exit(0)
        """
    ).stdout
    try:
        assert Node("run", tmp_path).elect() is not None
    finally:
        os.kill(int(out), signal.SIGKILL)


def test_a_childs_end_leaves_the_lock_with_its_parent(tmp_path: Path, program: Program) -> None:
    program(
        f"""
        import os
        from pathlib import Path
        from rlotel.collectors.election import Node
        seat = Node("run", Path({str(tmp_path)!r})).elect()
        child = os.fork()
        if not child:
            seat.disown()
            os._exit(0)
        os.waitpid(child, 0)
        assert Node("run", Path({str(tmp_path)!r})).elect() is None
        """
    )


def test_one_that_is_preferred_is_known_while_it_lives(tmp_path: Path) -> None:
    node = Node("run", tmp_path)
    assert not node.prefers()
    preference = node.prefer()
    assert preference is not None
    assert Node("run", tmp_path).prefers()
    preference.release(remove=True)
    assert not node.prefers()


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    node = Node("run", tmp_path)
    held = [node.elect(), node.prefer(), node.claim("trainer", ("GPU-1",))]
    for one in held:
        assert one is not None
        node.leave()
        one.release(remove=True)
    node.leave()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_file_was_removed_meanwhile_is_none(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = Held.take(path)
    assert first is not None
    path.unlink()
    second = Held.take(path)  # of another file by that name
    assert second is not None
    first.release(remove=True)  # which is not its own to remove
    assert path.exists()
    assert Held.take(path) is None


def test_a_gpu_of_two_roles_is_shared(tmp_path: Path) -> None:
    node = Node("run", tmp_path)
    claims = [node.claim("trainer", ("GPU-1", "GPU-2")), node.claim("rollout", ("GPU-2", "GPU-3"))]
    assert node.roles() == {"GPU-1": "trainer", "GPU-2": "shared", "GPU-3": "rollout"}
    for claim in claims:
        assert claim is not None
        claim.release(remove=True)
    assert node.roles() == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"role": "trainer"}', '{"role": 1, "uuids": 2}', "\x00"])
def test_a_claim_that_cannot_be_read_is_passed_over(tmp_path: Path, text: str) -> None:
    node = Node("run", tmp_path)
    good = node.claim("trainer", ("GPU-1",))
    folder = next(tmp_path.iterdir())
    bad = Held.take(folder / "0-bad.role")
    assert good is not None
    assert bad is not None
    bad.write(text)
    assert node.roles() == {"GPU-1": "trainer"}


def test_without_a_place_for_the_lock_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OSError):
        Node("run", file).elect()


def test_roles_add_up() -> None:
    assert both(None, "trainer") == "trainer"
    assert both("trainer", "trainer") == "trainer"
    assert both("trainer", "rollout") == "shared"
    assert both("shared", "rollout") == "shared"
