"""Arrays as arguments: DLPack, host tensors, placeholders, and their native unpacking."""
