"""A name that is imported, and not called without ring attention."""

all_gather = None
