"""In place of vLLM."""

import uuid


def random_uuid() -> str:
    return uuid.uuid4().hex
