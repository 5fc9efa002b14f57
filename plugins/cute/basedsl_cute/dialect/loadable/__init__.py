"""The package in which the MLIR bindings look for each dialect's Python module; see `cute`."""
