"""The view in a real terminal: a pseudo-terminal of 80 by 24."""

import fcntl
import os
import pty
import struct
import subprocess
import sysconfig
import termios
from pathlib import Path

import pytest

COMMAND = str(Path(sysconfig.get_path("scripts")) / "rlotel")
OTHER_SCREEN, FIRST_SCREEN = "\x1b[?1049h", "\x1b[?1049l"

pytestmark = pytest.mark.xdist_group("demo")


def in_terminal(rows: int, columns: int, capture: Path, *arguments: str, term: str = "xterm-256color") -> str:
    """Everything that the demo writes to a terminal of this size."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RLOTEL_"))}
    environ = {name: value for name, value in own.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    arguments = (COMMAND, "demo", "--capture", str(capture), *arguments)
    with subprocess.Popen(arguments, env={**environ, "TERM": term}, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                break
            if not piece:
                break
            written += piece
        os.close(ours)
        assert process.wait(60) == 0, written.decode()
    return written.decode()


def test_the_view_is_on_the_other_screen_and_its_last_frame_and_the_summary_stay(tmp_path: Path) -> None:
    written = in_terminal(24, 80, tmp_path / "c.jsonl", "--iterations", "4", "--nan-at", "2")
    live, _, after = written.partition(FIRST_SCREEN)
    assert OTHER_SCREEN in live
    assert "Ctrl-C ends the run" in live
    for panel in ("latency", "traffic", "errors", "saturation"):
        assert panel in live
        assert panel in after
    assert "4/4" in after
    assert "Ctrl-C ends the run" not in after
    # What was logged meanwhile comes after the view, not into it.
    assert "rl.train.loss is nan" in after
    assert "Done" in after


@pytest.mark.parametrize(("rows", "columns", "term"), [(24, 60, "xterm"), (10, 80, "xterm"), (24, 80, "dumb")])
def test_a_terminal_that_cannot_show_the_view_gets_lines(
    rows: int, columns: int, term: str, tmp_path: Path
) -> None:
    written = in_terminal(rows, columns, tmp_path / "c.jsonl", "--iterations", "1", term=term)
    assert OTHER_SCREEN not in written
    assert "iteration 1/1" in written
    assert "Done" in written
