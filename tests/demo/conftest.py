"""Loads the demo before any test here loads NumPy, so that the demo's one BLAS thread holds in tests too."""

import rlotel.demo  # noqa: F401 - for what it sets
