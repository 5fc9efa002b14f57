"""The DSL cute: its language, options, pipelines, and compiled functions."""
