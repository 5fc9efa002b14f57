"""Memory and synchronisation of several GPUs inside kernels: `cute.distributed`.

A `SymmetricTensor` is one argument: an array of each rank of a group, all reachable from the
kernels of every rank. Its `signals` order the ranks. Where the memory comes from: `from_torch`
(PyTorch's symmetric memory), `from_nvshmem` (NVSHMEM's heap), `from_pointers` (CUDA IPC, CuPy),
`simulated` (`sim.ranks`).
"""

from basedsl_cute.distributed.from_nvshmem import from_nvshmem
from basedsl_cute.distributed.from_torch import empty, from_torch
from basedsl_cute.distributed.signals import PeerTimeoutError, Signals
from basedsl_cute.distributed.symmetric import (
    SymmetricTensor,
    from_pointers,
    pad_bytes,
    simulated,
)

__all__ = [
    "PeerTimeoutError",
    "Signals",
    "SymmetricTensor",
    "empty",
    "from_nvshmem",
    "from_pointers",
    "from_torch",
    "pad_bytes",
    "simulated",
]
