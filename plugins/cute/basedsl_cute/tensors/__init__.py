"""Tensors in traced code: pointers, tensors, register vectors, and the functions that make them."""

from basedsl_cute.tensors import late_methods as late_methods  # gives `Tensor` load, store, fill
