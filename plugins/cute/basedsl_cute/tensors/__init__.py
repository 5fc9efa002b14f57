"""Tensors in traced code: pointers, tensors, register vectors, and the functions that make them."""
