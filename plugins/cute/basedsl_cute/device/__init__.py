"""The device: the CUDA driver, launches, graphs, tensor maps, and which target this machine is."""
