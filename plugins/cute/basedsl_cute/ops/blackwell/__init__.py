"""Kernels for data-center Blackwell (sm_100f): TMA, tcgen05, tensor memory."""
