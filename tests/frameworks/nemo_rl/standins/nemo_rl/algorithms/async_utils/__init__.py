"""As in NeMo RL."""
