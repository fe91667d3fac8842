"""A real, small GRPO run: `rlotel demo`, and the pieces its loop is made of."""

import os

# One thread for NumPy's matrix products, set before NumPy is loaded: how a product is split over threads
# changes its last bits, and the learning curve shall be the same on any number of cores.
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_variable, "1")
