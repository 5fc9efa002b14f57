"""Lowering of the `cute` dialect: kernels to NVVM and PTX, host code to calls of a launcher."""
