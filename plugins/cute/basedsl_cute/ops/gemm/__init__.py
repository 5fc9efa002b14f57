"""`matmul`: the choice of a kernel and its configuration for a product of arrays, and its call."""
