"""Part of the stand-ins."""
