"""The compiler's face: the DSL object, its options, its pipelines, and compiled functions."""
