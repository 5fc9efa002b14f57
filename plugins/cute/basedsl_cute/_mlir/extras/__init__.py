"""`_mlir.extras`: has `types`."""
