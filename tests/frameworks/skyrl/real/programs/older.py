"""Lets releases of SkyRL before 0.3 be imported: they look for something where Ray no longer has it."""

import sys

import ray.util.placement_group
import ray.util.scheduling_strategies

vars(sys.modules["ray.util.placement_group"]).setdefault(
    "PlacementGroupSchedulingStrategy", ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
)
