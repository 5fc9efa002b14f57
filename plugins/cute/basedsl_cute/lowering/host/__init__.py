"""Lowering of launches: host code fills a launch configuration and calls a launcher."""
