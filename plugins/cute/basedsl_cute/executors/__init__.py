"""How compiled cute code runs: native host code that launches kernels on a GPU or the simulator."""
