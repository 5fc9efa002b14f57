"""Lowering of kernels: `cute` operations become `nvvm`, `llvm`, `vector` and `arith` operations."""
