"""Running compiled kernels: arrays from other libraries, the CUDA driver, launches."""
