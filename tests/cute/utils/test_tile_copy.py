"""`utils.block_copy`: whole tiles by TMA, for one block or for blocks that share them."""

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_cute.utils as utils
from basedsl import DSLError, DSLTypeError
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack

TILE = (16, 64)


@cute.kernel
def kernel(
    load: cute.CopyAtom,
    x: cute.Tensor,
    store: cute.CopyAtom,
    y: cute.Tensor,
    layout: cute.ComposedLayout,
    cluster: cute.Constexpr,
    shared_along: cute.Constexpr,
):
    m, n, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float16, layout.outer, 1024, swizzle=layout.inner)
    barrier = smem.allocate_array(cute.Int64)
    if warp == 0:
        with cute.arch.elect_one():
            cute.arch.mbarrier_init(barrier, 1)
            cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive_relaxed()
    cute.arch.cluster_wait()
    which = (m, 0) if shared_along == "M" else (0, n) if shared_along == "N" else (m, n)
    multicast = {"cluster_shape": cluster, "multicast_dim": shared_along}
    if warp == 0:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(
                barrier, cute.size_in_bytes(cute.Float16, layout)
            )
        source = cute.local_tile(x, TILE, which)
        if cute.const_expr(shared_along is None):
            utils.block_copy(load, source, tile, tma_bar_ptr=barrier)
        else:
            utils.block_copy(load, source, tile, tma_multicast=multicast, tma_bar_ptr=barrier)
    cute.arch.mbarrier_wait(barrier, 0)
    cute.arch.sync_threads()
    if warp == 0:
        utils.block_copy(store, tile, cute.local_tile(y, TILE, (m, n)))
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def copied(x: cute.Tensor, y: cute.Tensor, cluster: cute.Constexpr, along: cute.Constexpr):
    layout = utils.sm90.make_smem_layout_epi(x.element_type, utils.LayoutEnum.ROW_MAJOR, TILE, 1)
    layout = cute.slice_(layout, (None, None, 0))
    load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, TILE)
    store = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), y, layout, TILE)
    kernel(*load, *store, layout, cluster, along).launch(
        grid=(*cluster, 1), block=(64, 1, 1), cluster=(*cluster, 1)
    )


@pytest.mark.parametrize("along", [None, "M", "N"])
@pytest.mark.parametrize("cluster", [(2, 2), (1, 2)])
def test_blocks_get_their_tiles(target, cluster, along):
    x = np.random.default_rng(0).standard_normal((32, 128)).astype(np.float16)
    y = np.full((16 * cluster[0], 64 * cluster[1]), np.nan, np.float16)
    copied(from_dlpack(x), from_dlpack(y), cluster, along)
    for m in range(cluster[0]):
        for n in range(cluster[1]):
            i, j = (m, 0) if along == "M" else (0, n) if along == "N" else (m, n)
            np.testing.assert_array_equal(
                y[16 * m : 16 * m + 16, 64 * n : 64 * n + 64],
                x[16 * i : 16 * i + 16, 64 * j : 64 * j + 64],
            )


@cute.jit
def described(x: cute.Tensor, y: cute.Tensor, multicast: cute.Constexpr, whole: cute.Constexpr):
    @cute.kernel
    def kernel(load: cute.CopyAtom, x: cute.Tensor, layout: cute.ComposedLayout):
        tile = utils.SmemAllocator().allocate_tensor(
            cute.Float16, layout.outer, 1024, swizzle=layout.inner
        )
        atom = load if whole else cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16)
        utils.block_copy(atom, cute.local_tile(x, TILE, (0, 0)), tile, tma_multicast=multicast)

    layout = utils.sm90.make_smem_layout_epi(x.element_type, utils.LayoutEnum.ROW_MAJOR, TILE, 1)
    layout = cute.slice_(layout, (None, None, 0))
    load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, TILE)
    kernel(*load, layout).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))


class Frozen(dict):
    __hash__ = object.__hash__


@pytest.mark.parametrize(
    "multicast, whole, error, text",
    [
        (None, False, DSLTypeError, "block_copy\\(\\) takes a TMA atom"),
        ({"cluster_shape": (2, 1)}, True, DSLTypeError, "does not say which blocks share"),
        ({"cluster_shape": (2, 1), "multicast_dim": "K"}, True, DSLTypeError, "does not say"),
        (
            {"cluster_shape": (2, 1), "multicast_dim": "M", "use_2cta_mma_inst": True},
            True,
            DSLError,
            "for pairs of blocks .* is not offered",
        ),
    ],
)
def test_what_is_refused(sim, multicast, whole, error, text):
    x = from_dlpack(np.zeros((16, 64), np.float16))
    with pytest.raises(error, match=text):
        described(x, x, multicast and Frozen(multicast), whole)
