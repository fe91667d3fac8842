"""What a user starts."""
