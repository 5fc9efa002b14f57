"""C_g = A_g B_g^T for many groups at once on Hopper; their shapes and addresses in device memory.

A_g is (M, K), B_g is (N, K), C_g is (M, N), of any extents, none of which the host knows. The
kernel is that of `hopper_gemm`, but that blocks find their tiles from the table of shapes, and make
the tensor maps that they copy by from the tables of addresses and strides: each block its own in
global memory, for A and B by the warp that loads, for C by each consumer.

TMA writes whole 16 bytes of a row, even beyond its end (seen on an H200). A C whose rows are not of
such, or do not begin at such, is written by ordinary stores of what lies in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.ops.hopper import config
from basedsl_cute.ops.hopper.collective import (
    allocate,
    check_majors,
    instruction,
    multiplication,
    multiply,
    order_of_turns,
    place_in_cluster,
    ring_of_stages,
    shared_layouts,
    step,
    store_atom,
    tma_atoms,
    wait_for_predecessor,
)
from basedsl_cute.ops.hopper.config import Kinds, check
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.group_scheduler import (
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from basedsl_cute.utils.tensormap_manager import TensorMapManager, TensorMapUpdateMode
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

__all__ = ["Config", "Kinds", "grouped_gemm", "maps_of", "tables"]

WORDS = 16  # Int64 of a tensor map


@dataclass(frozen=True)
class Config(config.Config):
    """What is chosen at compile time, see `hopper_config`."""

    producer_registers: int = 40  # it makes tensor maps, too


def maps_of(cfg: Config) -> int:
    """Tensor maps of a block: of A, of B, and of C for each consumer."""
    return 2 + cfg.consumers


class Tables(NamedTuple):
    """What the device knows of the groups, see `grouped_gemm`."""

    sizes: Any
    strides: Any
    addresses: Any

    def matrix(self, group: Any, operand: int, shape: Any, kinds: Kinds, align: int = 16) -> Any:
        """A (0), B (1) or C (2) of a group, at an address that is a multiple of `align` bytes."""
        dtype = (kinds.a, kinds.b, kinds.c)[operand]
        address = self.addresses[group, operand]
        pointer = cute.make_ptr(dtype, address, cute.AddressSpace.gmem, assumed_align=align)
        stride = [self.strides[group, operand, i] for i in range(2)]
        stride[contiguous_mode(operand, kinds)] = 1
        return cute.make_tensor(pointer, cute.make_layout(shape, stride=tuple(stride)))


def contiguous_mode(operand: int, kinds: Kinds) -> int:
    major = (kinds.major_a, kinds.major_b, kinds.major_c)[operand]
    return 1 if major is sm90.LayoutEnum.ROW_MAJOR else 0


class OwnMaps:
    """The tensor maps of one block, and where in shared memory it changes them."""

    __dsl_leaf__ = True

    def __init__(self, maps: Any, block: Any, scratch: Any, mode: TensorMapUpdateMode) -> None:
        self._manager = TensorMapManager(mode)
        self._scratch = scratch
        self._places = cute.slice_(maps, (block, None, None)).iterator

    def begin(self, atom: Any, which: int, warp: Any) -> None:
        """Warp `warp` of the block puts the atom's tensor map where it is going to change it."""
        in_smem = self._manager.tensormap_update_mode is TensorMapUpdateMode.SMEM
        at = (self._scratch if in_smem else self._places) + WORDS * which
        self._manager.init_tensormap_from_atom(atom, at, warp)

    def place(self, which: Any) -> Any:
        return self._places + WORDS * which

    def change(self, atoms: Any, which: Any, tensors: Any, warp: Any) -> None:
        """Warp `warp` makes the maps from `which` on those of `tensors`."""
        places = [self.place(which + i) for i in range(len(atoms))]
        staging = [self._scratch + WORDS * (which + i) for i in range(len(atoms))]
        self._manager.update_tensormap(tensors, atoms, places, warp, staging)
        for place in places:
            self._manager.fence_tensormap_update(place)


@cute.kernel
def grouped_kernel(
    load_a: tma.TmaAtom,
    load_b: tma.TmaAtom,
    store_c: tma.TmaAtom,
    tables: Tables,
    maps: cute.Tensor,
    schedule: PersistentTileSchedulerParams,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    update: cute.Constexpr,
):
    if cute.const_expr(cfg.overlap):
        arch.griddepcontrol_launch_dependents()
    layout_a, layout_b, layout_c = shared_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    scratch = smem.allocate_array(cute.Int64, WORDS * maps_of(cfg), byte_alignment=128)
    sa = allocate(smem, kinds.a, layout_a)
    sb = allocate(smem, kinds.b, layout_b)
    sc = allocate(smem, kinds.c, layout_c)

    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    warp = arch.make_warp_uniform(arch.warp_idx())
    turns = order_of_turns(smem, warp, cfg)
    loads = ring_of_stages(barriers, kinds, cfg)
    wait_for_predecessor(cfg)
    x, y, cluster = arch.block_idx()
    own = OwnMaps(maps, x + cm * (y + cn * cluster), scratch, update)
    scheduler = StaticPersistentGroupTileScheduler.create(
        schedule,
        arch.block_idx(),
        arch.grid_dim(),
        (bm * cm, bn * cn, bk),
        create_initial_search_state(),
        tables.sizes.shape[0],
        tables.sizes,
    )
    if warp < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp == 0:
            produce(loads, scheduler, tables, own, load_a, sa, load_b, sb, kinds, cfg)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        consume(loads, turns, scheduler, tables, own, sa, sb, sc, store_c, kinds, cfg)


@cute.jit
def produce(
    loads, scheduler, tables, own, load_a, sa, load_b, sb,
    kinds: cute.Constexpr, cfg: cute.Constexpr,
):  # fmt: skip
    """One warp: the tiles of A and B that the consumers will want, in order."""
    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    at_m, at_n, mask_a, mask_b = place_in_cluster(cfg)
    own.begin(load_a, 0, 0)
    own.begin(load_b, 1, 0)

    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.stages)
    current = cute.Int32(-1)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, g = work.tile_idx
        found = work.group_search_result
        rows, columns, depth = (
            found.problem_shape_m,
            found.problem_shape_n,
            found.problem_shape_k,
        )
        if g != current and depth > 0:
            # The copies issued so far have read their tensor maps.
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0, read=True)
            tensors = (
                tables.matrix(g, 0, (rows, depth), kinds),
                tables.matrix(g, 1, (columns, depth), kinds),
            )
            for x, operand in zip(tensors, (0, 1), strict=True):
                assert suits_tma(x, contiguous_mode(operand, kinds)), (
                    "addresses and strides of A and B must be multiples of 16 bytes"
                )
            own.change((load_a, load_b), 0, tensors, 0)
            current = g
        ga = cute.zipped_divide(cute.make_identity_tensor((rows, depth)), (bm, bk))
        gb = cute.zipped_divide(cute.make_identity_tensor((columns, depth)), (bn, bk))
        along_n, along_m = cute.make_layout(cn), cute.make_layout(cm)
        to_a, from_a = tma.tma_partition(load_a, at_n, along_n, cute.group_modes(sa, 0, 2), ga)
        to_b, from_b = tma.tma_partition(load_b, at_m, along_m, cute.group_modes(sb, 0, 2), gb)
        for k in cute.range(found.cta_tile_count_k, unroll=1):
            loads.producer_acquire(filled)
            barrier = loads.producer_get_barrier(filled)
            cute.copy(
                load_a,
                from_a[None, (m, k)],
                to_a[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_a,
                tma_desc_ptr=own.place(0),
            )
            cute.copy(
                load_b,
                from_b[None, (n, k)],
                to_b[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_b,
                tma_desc_ptr=own.place(1),
            )
            filled.advance()
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    loads.producer_tail(filled)


@cute.jit
def consume(loads, turns, scheduler, tables, own, sa, sb, sc, store_c,
    kinds: cute.Constexpr, cfg: cute.Constexpr,
):  # fmt: skip
    """A warpgroup: sums of its rows of a tile, and their way to memory."""
    bm, bn, _ = cfg.tile
    warp = arch.make_warp_uniform(arch.warp_idx())
    consumer = warp // 4 - 1
    mine = 0 if cfg.takes_turns else consumer  # which rows of a tile
    mma, acc, ra, rb = multiplication(sa, sb, mine, kinds, cfg)

    # C leaves in pieces of 64 rows, each an accumulator of a smaller instruction.
    piece = cfg.piece(kinds.c)
    columns = piece[1]
    down, across = bm // cfg.rows_of_a_step, bn // columns
    pieces = cute.make_tensor(acc.iterator, cute.make_layout((columns // 2, down * across)))
    one_piece = instruction(kinds, 1, piece)
    thread = arch.thread_idx()[0] % 128
    to_smem = cute.make_tiled_copy_C(store_atom(kinds, columns), one_piece)
    staged = to_smem.get_slice(thread).partition_D(sc)
    shape = one_piece.partition_shape_C(piece)
    mine_only = pipeline.NamedBarrier(1 + consumer, 128)
    stores = pipeline.PipelineTmaStore.create(num_stages=cfg.slots)
    storer = 4 * (consumer + 1)  # the warp that stores for this warpgroup
    slot = 0  # of the next tile's first piece
    own.begin(store_c, 2 + consumer, storer)

    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    done = read.clone()
    turn = cute.Int32(0)  # whose tile this one is
    current, by_tma = cute.Int32(-1), cute.Boolean(False)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, g = work.tile_idx
        found = work.group_search_result
        steps = found.cta_tile_count_k
        if turn == consumer if cute.const_expr(cfg.takes_turns) else True:
            if cute.const_expr(turns is not None):
                turns.wait()
            if steps > 0:
                mma.set(warpgroup.Field.ACCUMULATE, False)  # replaces what is in acc
                loads.consumer_wait(read)
                multiply(mma, acc, ra, rb, read.index)
                mma.set(warpgroup.Field.ACCUMULATE, True)
                read.advance()
                for _ in cute.range(1, steps, unroll=1):
                    step(loads, mma, acc, ra, rb, read, done)
                if cute.const_expr(turns is not None):
                    turns.arrive()
                warpgroup.wait_group(0)
                loads.consumer_release(done)
                done.advance()
            else:
                acc.fill(0)
                if cute.const_expr(turns is not None):
                    turns.arrive()

            c = tables.matrix(
                g, 2, (found.problem_shape_m, found.problem_shape_n), kinds, kinds.c.width // 8
            )
            if g != current:
                by_tma = suits_tma_store(c, contiguous_mode(2, kinds))
                if by_tma and warp == storer:
                    arch.cp_async_bulk_wait_group(0, read=False)
                    own.change((store_c,), 2 + consumer, (c,), storer)
            current = g
            gc = cute.zipped_divide(cute.make_identity_tensor(c.shape), piece)
            from_s, to_g = tma.tma_partition(store_c, 0, None, cute.group_modes(sc, 0, 2), gc)
            for i in cute.range_constexpr(down * across):
                where = ((m * down + i // across) * cfg.sharers + mine, n * across + i % across)
                place = consumer * cfg.slots + (slot + i) % cfg.slots
                if warp == storer:
                    stores.producer_acquire()
                mine_only.arrive_and_wait()  # the slot is free
                fragment = cute.make_rmem_tensor(shape, kinds.c)
                fragment.store(pieces[None, i].load().to(kinds.c).reshape(shape))
                target = staged[None, None, None, place]
                cute.copy(to_smem, to_smem.retile(fragment), target)
                arch.fence_view_async_shared()
                mine_only.arrive_and_wait()  # the piece is in shared memory
                if not by_tma:
                    store_inside(c, sc[None, None, place], where, piece, thread, kinds)
                if warp == storer:
                    if by_tma:
                        at = own.place(2 + consumer)
                        cute.copy(store_c, from_s[None, place], to_g[None, where], tma_desc_ptr=at)
                    stores.producer_commit()  # an empty group too: a slot is free so many later
            if cute.const_expr(down * across % cfg.slots != 0):
                slot = (slot + down * across) % cfg.slots
        else:
            read.advance(steps)
            done.advance(steps)
        if cute.const_expr(cfg.takes_turns):
            turn = turn + 1
            turn = 0 if turn == cfg.consumers else turn
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    if warp == storer:
        stores.producer_tail()


def suits_tma(x: Any, along: int) -> Any:
    """Whether the address, and the stride of the mode that is not the contiguous one, `along`, are
    multiples of 16 bytes.
    """
    stride = cute.Int64(x.stride[1 - along]) * (x.element_type.width // 8)
    return (x.iterator.toint() | stride) % 16 == 0


def suits_tma_store(c: Any, along: int) -> Any:
    """Whether the extent of the contiguous mode is such a multiple too."""
    return suits_tma(c, along) & (c.shape[along] * (c.element_type.width // 8) % 16 == 0)


@cute.jit
def store_inside(c, staged, where, piece, thread, kinds: cute.Constexpr):
    """All 128 threads write what of a piece of C in shared memory lies in C."""
    along = contiguous_mode(2, kinds)
    tile = cute.make_ordered_layout(piece, (1 - along, along))
    for i in cute.range(thread, cute.size(tile), 128, unroll=1):
        at = tile.get_hier_coord(i)
        row, column = where[0] * piece[0] + at[0], where[1] * piece[1] + at[1]
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = staged[at]


@cute.jit
def grouped_gemm(
    sizes: cute.Tensor,
    strides: cute.Tensor,
    addresses: cute.Tensor,
    maps: cute.Tensor,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr = Config(),
    update: cute.Constexpr = TensorMapUpdateMode.SMEM,
    stream: cute.Constexpr = None,
):
    """All products, on as many resident blocks as `maps` has room for, whole clusters of them.

    `sizes` is (groups, 4) of Int32: M, N, K, 1. `strides` is (groups, 3, 2) of Int32: those of A, B
    and C in elements, of which the one of the contiguous mode is 1; `addresses` is (groups, 3) of
    Int64. Addresses and other strides of A and B are multiples of 16 bytes, which is asserted (on
    the simulator, and on a GPU where assertions are enabled); where those of C and the extent of
    its contiguous mode are too, it is written by TMA. `kinds` says of all groups
    what their elements are, as in `hopper_gemm.gemm`, and which modes are contiguous. `maps`, at a
    multiple of 128 bytes, is (blocks, maps_of(cfg), 16) of Int64, to work in. Of `cfg`, the raster
    (`swizzle`, `along_m`) and `deferred` make no difference.
    """
    a, b = (cute.TFloat32 if x is cute.Float32 else x for x in (kinds.a, kinds.b))
    kinds = replace(kinds, a=a, b=b)
    check_majors(kinds)
    check(kinds, cfg)
    cm, cn = cfg.cluster
    # The atoms' own tensor maps are patterns: of any tensor with the same mode contiguous.
    patterns = [
        cute.make_tensor(
            cute.recast_ptr(maps.iterator, dtype=dtype),
            cute.make_layout((64, 64), stride=(64, 1) if contiguous_mode(i, kinds) else (1, 64)),
        )
        for i, dtype in enumerate((kinds.a, kinds.b, kinds.c))
    ]
    (load_a, _), (load_b, _), (store_c, _) = tma_atoms(patterns, kinds, cfg)
    clusters = maps.shape[0] // (cm * cn)
    schedule = PersistentTileSchedulerParams((cm, cn, clusters), (cm, cn, 1))
    grouped_kernel(
        load_a,
        load_b,
        store_c,
        Tables(sizes, strides, addresses),
        maps,
        schedule,
        kinds,
        cfg,
        update,
    ).launch(
        grid=(cm, cn, clusters),
        block=(cfg.threads, 1, 1),
        cluster=(cm, cn, 1),
        stream=stream,
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )


def tables(triples: Sequence[Any]) -> tuple[Any, Any, Any]:
    """`sizes`, `strides` and `addresses` of groups (a, b, c) of NumPy arrays or PyTorch tensors."""
    sizes, strides, addresses = [], [], []
    for a, b, c in triples:
        sizes.append((a.shape[0], b.shape[0], a.shape[1], 1))
        if isinstance(a, np.ndarray):
            strides.append([[s // x.itemsize for s in x.strides] for x in (a, b, c)])
            addresses.append([x.ctypes.data for x in (a, b, c)])
        else:
            strides.append([x.stride() for x in (a, b, c)])
            addresses.append([x.data_ptr() for x in (a, b, c)])
    return (
        np.array(sizes, np.int32).reshape(-1, 4),
        np.array(strides, np.int32).reshape(-1, 3, 2),
        np.array(addresses, np.int64).reshape(-1, 3),
    )
