"""The C interface between compiled host code and the launcher that starts its kernels.

A launch in host code (`lowering.launch`) fills a `LaunchConfig` and an array of pointers to the
kernel's arguments, then calls

    i32 basedsl_launch(ptr launcher, ptr config, ptr args)

which starts the kernel, or reports why not and returns nonzero; the host function then returns at
once. `launcher` is the address that the symbol `basedsl_launcher` was bound to when the code was
loaded: one for each loaded function, its layout being the launcher's own business. What launchers
do is in `runtime.launch_abi` (a Python callback, for the simulator) and `runtime.launcher` (CUDA).

All fields of the config are 64-bit and signed, so that a launcher sees what the user wrote, before
any truncation.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

LAUNCH_SYMBOL = "basedsl_launch"
LAUNCHER_SYMBOL = "basedsl_launcher"

# Bits of LaunchConfig.flags.
COOPERATIVE = 1  # all blocks resident at once (CUDA driver: CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
PDL = 2  # may start while its predecessor ends (..._PROGRAMMATIC_STREAM_SERIALIZATION)
# Then 8 bits for each extent of the preferred cluster (..._PREFERRED_CLUSTER_DIMENSION); 0: none.
PREFERRED_CLUSTER = 8  # the first bit


def preferred_cluster(flags: int) -> tuple[int, int, int] | None:
    """Return the shape of clusters that a launch with these flags prefers, if any."""
    x, y, z = (flags >> PREFERRED_CLUSTER + 8 * i & 0xFF for i in range(3))
    return (x, y, z) if x else None


class LaunchConfig(ctypes.Structure):
    """The configuration of one launch. Zero clusters: the launch says nothing about them."""

    _fields_ = [
        ("grid", ctypes.c_int64 * 3),
        ("block", ctypes.c_int64 * 3),
        ("cluster", ctypes.c_int64 * 3),
        ("smem", ctypes.c_int64),
        ("stream", ctypes.c_int64),
        ("kernel", ctypes.c_int64),
        ("flags", ctypes.c_int64),
        ("args", ctypes.c_int64),
        # CUevents, 0 for none; their flags, in the upper half whether the start of a block fires it
        ("completion_event", ctypes.c_int64),
        ("completion_flags", ctypes.c_int64),
        ("programmatic_event", ctypes.c_int64),
        ("programmatic_flags", ctypes.c_int64),
    ]


CONFIG_WORDS = ctypes.sizeof(LaunchConfig) // 8
# The index of each field among the 64-bit words, for whoever writes them from MLIR.
CONFIG_INDEX = {"grid": 0, "block": 3, "cluster": 6, "smem": 9, "stream": 10, "kernel": 11}
CONFIG_INDEX |= {"flags": 12, "args": 13, "completion_event": 14, "programmatic_event": 16}


@dataclass(frozen=True)
class KernelEntry:
    """The facts about a kernel that launches need. `smem_bytes` is dynamic shared memory that the
    compiler itself uses, which every launch of it gets on top of what the user asks for;
    `static_smem` is the rest. `file` and `line` are where Python defines it; "" if not known.
    """

    name: str
    arguments: tuple[str, ...]
    smem_bytes: int = 0
    static_smem: int = 0
    uses_dynamic_smem: bool = False
    block: tuple[int, ...] | None = None
    cluster: tuple[int, ...] | None = None
    file: str = ""
    line: int = 0
    preferred_cluster: tuple[int, ...] | None = None
    smem_carveout: int = -1  # percent of L1 that had better be shared memory; -1 says nothing


@dataclass(frozen=True)
class LaunchTable:
    """The kernels of a module; `LaunchConfig.kernel` is an index into it. Plain data: it is kept
    with the compiled code.
    """

    kernels: tuple[KernelEntry, ...] = ()
