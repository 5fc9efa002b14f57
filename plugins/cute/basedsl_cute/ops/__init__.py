"""`basedsl_cute.ops`: whole kernels, ready to call."""
