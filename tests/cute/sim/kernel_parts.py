"""Parts of the planted and the correct kernels: shared memory, barriers, copies, clusters."""

import basedsl_cute as cute
from basedsl_cute import arch


def shared(count, dtype=cute.Float32, align=128):
    """A vector of `count` elements in shared memory."""
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), align)


def copy_async(source, target):
    """Copy one Float32 by cp.async."""
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    one = cute.make_layout(1)
    cute.copy(atom, cute.make_tensor(source, one), cute.make_tensor(target, one))


@cute.jit
def barriers(*counts):
    """Initialised mbarriers, with the arrivals of a phase of each."""
    bar = cute.utils.SmemAllocator().allocate_array(cute.Int64, len(counts))
    if arch.thread_idx()[0] == 0:
        for i, count in enumerate(counts):
            arch.mbarrier_init(bar + i, count)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    return bar


@cute.jit
def of_rank(tile: cute.Tensor, rank):
    """The tile of another block of the cluster."""
    return cute.make_tensor(arch.map_dsmem_ptr(tile.iterator, rank), tile.layout)


@cute.jit
def cluster_sync():
    """Wait for all threads of the cluster."""
    arch.cluster_arrive()
    arch.cluster_wait()
