"""Stands in for SkyRL: what is watched of it, with its signatures, and nothing inside."""
