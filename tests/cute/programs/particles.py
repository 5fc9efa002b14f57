"""Records in memory, by raw pointers: a struct overlaid on bytes, sorted into bins by atomics."""

import ctypes
from dataclasses import dataclass

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import from_dlpack, make_ptr


@cute.struct
class Particle:
    position: cute.struct.MemRange[cutlass.Float32, 3]
    mass: cutlass.Float16
    kind: cutlass.Uint8


@dataclass(frozen=True)
class Grid:
    """The inputs of a launch: numbers that travel, and what is known while compiling."""

    cell: cutlass.Float32
    bins: cutlass.Constexpr[int]
    threads: cutlass.Constexpr[int] = 64


@cute.kernel
def bin_kernel(
    particles: cute.Pointer,
    count: cutlass.Int32,
    masses: cute.Tensor,
    counts: cute.Tensor,
    grid: Grid,
):
    tid = cute.arch.thread_idx()[0]
    shared = cutlass.utils.SmemAllocator().allocate_tensor(
        cutlass.Int32, cute.make_layout(grid.bins), 16
    )
    for b in cutlass.range(tid, grid.bins, grid.threads):
        shared[b] = 0
    cute.arch.sync_threads()
    i = cute.arch.block_idx()[0] * grid.threads + tid
    if i < count:
        one = Particle((particles + i * Particle.size_in_bytes()).align(4))
        x, y, z = one.position[0], one.position[1], one.position[2]
        distance = cute.math.sqrt(x * x + y * y + z * z)
        b = min((distance / grid.cell).to(cutlass.Int32), grid.bins - 1)
        cute.arch.atomic_add(shared.iterator + b, 1)
        if one.kind == 1:
            one.kind = 2
            cute.arch.atomic_add(masses.iterator + b, one.mass.to(cutlass.Float32))
    cute.arch.sync_threads()
    for b in cutlass.range(tid, grid.bins, grid.threads):
        if shared[b] > 0:
            cute.arch.atomic_add(counts.iterator + b, shared[b])


@cute.jit
def bin_particles(
    particles: cute.Pointer,
    count: cutlass.Int32,
    masses: cute.Tensor,
    counts: cute.Tensor,
    grid: Grid,
):
    bin_kernel(particles, count, masses, counts, grid).launch(
        grid=(cute.ceil_div(count, grid.threads), 1, 1), block=(grid.threads, 1, 1)
    )


def run():
    rng = np.random.default_rng(9)
    record = np.dtype(
        {
            "names": ["position", "mass", "kind"],
            "formats": [("f4", 3), "f2", "u1"],
            "offsets": [Particle.offset_of(n) for n in ("position", "mass", "kind")],
            "itemsize": Particle.size_in_bytes(),
        }
    )
    host = np.zeros(150, record)
    host["position"] = rng.integers(-4, 5, (150, 3)) / 2
    host["mass"] = rng.integers(1, 5, 150)
    host["kind"] = rng.integers(0, 2, 150)
    distance = np.sqrt((host["position"].astype(np.float32) ** 2).sum(axis=1))
    bins = np.minimum((distance / np.float32(0.5)).astype(int), 7)
    ones = host["kind"] == 1
    masses, counts = np.zeros(8, np.float32), np.zeros(8, np.int32)

    memory, address = on_device(host)
    pointer = make_ptr(
        cutlass.Uint8, address, cute.AddressSpace.gmem, assumed_align=16, num_bytes=host.nbytes
    )
    bin_particles(
        pointer, len(host), from_dlpack(masses), from_dlpack(counts), Grid(cell=0.5, bins=8)
    )
    read_back(memory, host)
    np.testing.assert_array_equal(counts, np.bincount(bins, minlength=8))
    np.testing.assert_array_equal(
        masses, np.bincount(bins[ones], weights=host["mass"][ones], minlength=8)
    )
    assert (host["kind"][ones] == 2).all() and (host["kind"][~ones] == 0).all()


def on_device(host):
    """The bytes where kernels reach them: what owns them, and their address."""
    if "simulator" in cute.target_description():
        return None, host.ctypes.data
    import torch

    memory = torch.from_numpy(host.view(np.uint8).copy()).cuda()
    return memory, ctypes.c_void_p(memory.data_ptr()).value


def read_back(memory, host):
    if memory is not None:
        host.view(np.uint8)[:] = memory.cpu().numpy()
