"""Draws what `benchmarks.trainers` has measured: `python -m benchmarks.chart RESULTS.json PICTURE.png`."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def draw(results: dict[str, dict[str, float]], picture: Path) -> None:
    """One pair of bars a trainer: milliseconds of an iteration without rlotel, and what is added by it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = sorted(results, key=lambda name: results[name]["off_ms"])
    off = [results[name]["off_ms"] for name in names]
    added = [results[name]["on_ms"] - results[name]["off_ms"] for name in names]
    figure, axes = plt.subplots(figsize=(9, 0.46 * len(names) + 1.4), dpi=120)
    axes.barh(names, off, color="#9aa5b1", label="the trainer alone")
    axes.barh(names, [max(one, 0.0) for one in added], left=off, color="#d9480f", label="added by rlotel")
    for place, (one, more) in enumerate(zip(off, added, strict=True)):
        label = f"  {more:+.1f} ms" if more > 0 else "  less than the runs differ"
        axes.text(one + max(more, 0.0), place, label, va="center", fontsize=9)
    axes.set_xlim(right=max(off) * 1.3)
    axes.set_xlabel("milliseconds of one iteration of a toy on a CPU; a real one takes seconds to minutes")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
