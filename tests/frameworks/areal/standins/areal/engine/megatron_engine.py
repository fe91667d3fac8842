"""An engine that trains."""

from typing import Any


class MegatronEngine:
    """Loads nothing."""

    def initialize(self, addr: Any, ft_spec: Any, *args: Any, **kwargs: Any) -> None:
        """Load the model."""
