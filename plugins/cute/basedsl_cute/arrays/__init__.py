"""Arrays as arguments: DLPack, tensors on the host, placeholders, how native calls read them."""
