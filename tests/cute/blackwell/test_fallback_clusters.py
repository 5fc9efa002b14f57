"""Clusters of a preferred and of a fallback shape in one launch, and memory of two branches."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack


@cute.jit
def neighbours(tile: cute.Tensor, out: cute.Tensor, blocks: cute.Constexpr):
    """Every block writes a number into the next one's shared memory, and then stores its own."""
    x, y, _ = arch.block_idx()
    width, _, _ = arch.grid_dim()
    rank = arch.block_idx_in_cluster()
    there = arch.map_dsmem_ptr(tile.iterator, (rank + 1) % blocks)
    arch.cluster_arrive()
    arch.cluster_wait()
    arch.store(there, cute.Int32(100 * rank + blocks))
    arch.cluster_arrive()
    arch.cluster_wait()
    out[y * width + x] = tile[0]


@cute.kernel
def kernel(out: cute.Tensor):
    dx, dy, dz = arch.block_in_cluster_dim()
    smem = cute.utils.SmemAllocator()
    if dx * dy * dz == 8:
        tile = smem.allocate_tensor(cute.Int32, cute.make_layout(20_000))
        neighbours(tile, out, 8)
    else:
        tile = smem.allocate_tensor(cute.Int32, cute.make_layout(20_000))
        other = smem.allocate_tensor(cute.Int32, cute.make_layout(8))
        other[0] = 1
        neighbours(tile, out, 2)


@cute.jit
def host(out: cute.Tensor, grid: cute.Constexpr, merged: cute.Constexpr = True):
    kernel(out).launch(
        grid=grid,
        block=1,
        cluster=(4, 2, 1),
        fallback_cluster=(2, 1, 1),
        smem_merge_branch_allocs=merged,
    )


def expected(grid):
    """Every second place of a large cluster has four small ones."""
    width, height, _ = grid
    found = np.zeros((height, width), np.int32)
    for number, (y, x) in enumerate(np.ndindex(height // 2, width // 4)):
        part = found[2 * y : 2 * y + 2, 4 * x : 4 * x + 4]
        ranks = np.arange(8).reshape(2, 4) if number % 2 == 0 else np.array([[0, 1, 0, 1]] * 2)
        blocks = 8 if number % 2 == 0 else 2
        part[...] = 100 * ((ranks - 1) % blocks) + blocks
    return found.ravel()


@pytest.mark.parametrize("grid", [(8, 2, 1), (12, 4, 1), (4, 2, 1)])
def test_both_shapes_run(grid):
    out = np.full(grid[0] * grid[1], -1, np.int32)
    cute.compile(host, out, grid, options="--arch sim")(out)
    np.testing.assert_array_equal(out, expected(grid))


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
def test_memory_of_branches_is_shared_on_demand():
    out = from_dlpack(np.zeros(16, np.int32))
    found = {}
    for merged in (False, True):
        compiled = cute.compile(host, out, (8, 2, 1), merged, options="--arch sm_100a")
        assert ".reqnctapercluster" not in compiled.stages.text("ptx")
        found[merged] = compiled.resources["kernel"].dynamic_smem
    assert found == {False: 160_768, True: 80_896}


def test_clusters_of_two_shapes_are_new_in_sm_100():
    out = from_dlpack(np.zeros(16, np.int32))
    with pytest.raises(DSLTypeError, match="sm_90a has no cluster of a preferred and a fallback"):
        cute.compile(host, out, (8, 2, 1), options="--arch sm_90a")
