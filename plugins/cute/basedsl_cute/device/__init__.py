"""The device: the CUDA driver, launches, graphs, tensor maps, and the detected target."""
