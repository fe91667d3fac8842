"""Each folder here needs its framework, in an environment of its own: `make test-ray` and the like make it.

NeMo RL cannot be installed from a package index; its folder brings stand-ins.
"""

import importlib.util
from pathlib import Path

collect_ignore = [
    folder.name
    for folder in Path(__file__).parent.iterdir()
    if folder.is_dir() and folder.name != "nemo_rl" and importlib.util.find_spec(folder.name) is None
]
