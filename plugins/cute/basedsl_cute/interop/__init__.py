"""Bridges to other libraries: PyTorch, JAX, CUDA's Python bindings, and test helpers."""
