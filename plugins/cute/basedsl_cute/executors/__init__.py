"""Executors of compiled cute code: native host code that launches on a GPU or the simulator."""
