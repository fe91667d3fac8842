"""The semantic model as Python objects, generated from the YAML in `semconv/`."""
