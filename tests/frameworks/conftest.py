"""Each folder here needs its framework, in an environment of its own: `make test-ray` and the like make it."""

import importlib.util
from pathlib import Path

collect_ignore = [
    folder.name
    for folder in Path(__file__).parent.iterdir()
    if folder.is_dir() and importlib.util.find_spec(folder.name) is None
]
