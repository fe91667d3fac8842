"""In place of vLLM."""


class TokensPrompt(dict):  # type: ignore[type-arg]
    pass
