"""What `semconv/generate.py` is made of: reading the model, its policies, and one writer a generated file."""
