"""The meta-stage: the Python interpreter runs the rewritten function with proxy values."""
