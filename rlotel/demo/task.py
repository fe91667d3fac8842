"""The demo's task: generated sums and differences of two digits, as tokens over a 14-character vocabulary.

A prompt is four tokens, such as ``3+4=`` or ``9-2=``; a right completion is the number and the end mark:
``7.`` or ``12.``. What a completion is worth is said in :mod:`rlotel.demo.verifier`.
"""

import numpy as np
from numpy.typing import NDArray

VOCABULARY = "0123456789+-=."
END = VOCABULARY.index(".")
PROMPT_TOKENS = 4

_PLUS, _MINUS, _EQUALS = (VOCABULARY.index(character) for character in "+-=")


def prompts(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws prompts; a difference is never negative, so that every answer is one or two digits.

    Args:
        count: How many prompts.
        rng: The only source of chance.

    Returns:
        Token ids of shape (count, 4).
    """
    digits = rng.integers(0, 10, size=(count, 2))
    minus = rng.random(count) < 0.5
    digits[minus] = -np.sort(-digits[minus], axis=1)
    operator = np.where(minus, _MINUS, _PLUS)
    return np.stack([digits[:, 0], operator, digits[:, 1], np.full(count, _EQUALS)], axis=1)


def encode(text: str) -> NDArray[np.int64]:
    """Token ids of a text; raises ValueError for a character outside the vocabulary."""
    return np.array([VOCABULARY.index(character) for character in text], dtype=np.int64)


def decode(tokens: NDArray[np.int64]) -> str:
    """The text of token ids, the end mark included."""
    return "".join(VOCABULARY[token] for token in tokens.tolist())
