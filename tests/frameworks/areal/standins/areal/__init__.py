"""A stand-in for AReaL: what is watched of it, as short as it can be. What calls do is up to the test."""
