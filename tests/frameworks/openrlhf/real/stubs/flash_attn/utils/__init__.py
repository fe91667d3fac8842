"""In place of flash-attn."""
