"""Stands in for NeMo RL: the modules and signatures that the integration watches, and no machine learning."""

__version__ = "0.0.0"
