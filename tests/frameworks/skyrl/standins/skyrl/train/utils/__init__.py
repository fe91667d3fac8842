"""What trainers use."""
