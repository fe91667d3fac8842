"""Names that are imported, and not called without packed samples."""

index_first_axis = pad_input = rearrange = unpad_input = None
