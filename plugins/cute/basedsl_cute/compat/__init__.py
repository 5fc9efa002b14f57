"""Names and import paths that programs written for CuTe's Python DSL use."""
