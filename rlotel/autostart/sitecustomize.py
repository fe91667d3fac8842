"""What a Python runs before its program if this folder is on `PYTHONPATH`: rlotel, then the user's sitecustomize.

Nothing of rlotel is imported where it is switched off, and nothing that goes wrong stops the program.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _start() -> None:
    if os.environ.get("RLOTEL_ENABLED", "").strip().lower() in {"0", "false", "no", "off"}:
        return
    _tidy()
    if hasattr(sys, "_rlotel_autostart"):
        return  # it is installed here, and has been started by that
    try:
        from rlotel import autostart
    except Exception as error:  # noqa: BLE001 - this Python may have another OpenTelemetry, or no rlotel at all
        if sys.stderr is not None:
            sys.stderr.write(f"rlotel is not started: {sys.executable} cannot import it ({error})\n")
    else:
        autostart.start()


def _tidy() -> None:
    """Put the path in order.

    Where a launcher put this folder before a worker's own `PYTHONPATH`, and there is none, the colon in between
    would stand for the working directory. And where this Python has no rlotel, it may be beside this folder, made
    by `pip install --target` for environments that can't be changed: last, so that what they have comes first.
    """
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as below
    if (path := os.environ.get("PYTHONPATH", "")).endswith(here + os.pathsep):
        os.environ["PYTHONPATH"] = path.removesuffix(os.pathsep)
        after = sys.path.index(here) + 1
        if sys.path[after : after + 1] == [os.getcwd()]:  # noqa: PTH109
            del sys.path[after]
    root = os.path.dirname(os.path.dirname(here))  # noqa: PTH120
    own = os.path.basename(root) not in {"site-packages", "dist-packages"}  # noqa: PTH119
    if own and getattr(importlib.util.find_spec("rlotel"), "origin", None) is None:
        sys.path.append(root)


def _go_on() -> None:
    """Run the `sitecustomize` that Python would have found without this one."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes a third of a bare start
    path = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    # Python keeps what it finds here after this file has run.
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
_go_on()
