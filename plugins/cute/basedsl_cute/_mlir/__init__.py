"""`_mlir`: MLIR's Python bindings, for programs that build operations themselves.

`ir` is the bindings' own module; the modules in `dialects` take numbers, vectors and pointers of
cute in place of SSA values, and the arguments of other MLIR versions.
"""
