"""Each folder here needs its framework, in an environment of its own: `make test-ray` and the like make it.

Those that cannot be installed without GPUs, or not from an index, bring stand-ins and recorded traces, which
are tested everywhere; their folder `real` needs the framework itself.
"""

import importlib.util
from pathlib import Path

from tests.frameworks.running import release

HERE = Path(__file__).parent
STANDINS = ("nemo_rl", "skyrl", "openrlhf", "areal")
MODULES = {"rllib": "ray.rllib"}
"""What must be importable for a folder, where it is not called the same."""


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


collect_ignore = [
    folder.name
    for folder in HERE.iterdir()
    if folder.is_dir() and folder.name not in STANDINS and not _importable(MODULES.get(folder.name, folder.name))
] + [f"{name}/real" for name in STANDINS if not (_importable(name) or release(name))]
