"""Part of a stand-in for AReaL."""
