"""In place of flash-attn, which needs a GPU: only its names are imported here."""
