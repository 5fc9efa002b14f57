"""`base_dsl.runtime`: has `cuda`, the same module as `basedsl_cute.cuda`."""
