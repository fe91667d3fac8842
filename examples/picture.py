"""Draws `rlotel demo`'s view of a capture as an SVG: python examples/picture.py CAPTURE.jsonl PICTURE.svg."""

import io
import sys
from pathlib import Path

from rich.console import Console

from rlotel.capture import read
from rlotel.demo.signals import Signals
from rlotel.demo.view import view


def main(capture: str, picture: str) -> None:
    signals = Signals()
    signals.take(read(capture))
    times = [point.time_ns for point in read(capture).all_points]
    console = Console(file=io.StringIO(), record=True, width=96, force_terminal=True, highlight=False)
    console.print(view(signals, goal=signals.iteration, elapsed=(max(times) - min(times)) / 1e9))
    Path(picture).write_text(console.export_svg(title="rlotel demo", unique_id="rlotel-demo"), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
