"""C = A B^T on Hopper: persistent, warp-specialised, TMA and wgmma, with a user's epilogue fused.

A is (M, K), B is (N, K), C is (M, N); all may have a last mode L of batches. One warp loads tiles
of A and B by TMA into a ring of stages, multicast within a cluster; the other warpgroups, the
consumers, multiply them, each 64 or more rows of a tile, pass the sums through the epilogue and
write them through shared memory by TMA, which leaves out what lies beyond M and N. Tiles of C are
dealt to resident blocks in advance.

Consumers share each tile, or they take turns, each with tiles of its own (`takes_turns`): then one
multiplies while another is in its epilogue, for more loads of A and B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl.numeric import maximum
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warp, warpgroup
from basedsl_cute.utils import epilogue
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)

__all__ = ["Config", "Kinds", "choose", "gemm"]

REGISTERS = 65536  # of a multiprocessor, 32 bits each
SHARED_MEMORY = 227 * 1024  # bytes that a block can have


@dataclass(frozen=True)
class Config:
    """What is chosen at compile time. Unequal ones compute the same, but for the order of sums."""

    tile: tuple[int, int, int] = (128, 256, 64)  # of C, and the step of K: (M, N, K) in elements
    stages: int = 4  # of A and B in shared memory
    consumers: int = 2  # warpgroups that multiply
    takes_turns: bool = False  # each consumer has tiles of its own
    cluster: tuple[int, int] = (1, 1)  # blocks along (M, N) that multicast B and A to each other
    swizzle: int = 8  # tiles in a band of the raster, see `utils.tile_scheduler`
    along_m: bool = True  # the direction of the raster within a band
    slots: int = 2  # pieces of C in shared memory, for each consumer
    overlap: bool = True  # programmatic dependent launch: begins while its predecessor ends
    producer_registers: int = 40

    def __post_init__(self) -> None:
        m, n, k = self.tile
        rows = self.rows_of_a_step
        if m % rows or n % 8 or k % 8 or not (rows <= m <= 256 and 8 <= n <= 256 and 8 <= k):
            raise ValueError(
                f"no tile {self.tile} for {self.consumers} consumer(s): M is a multiple of "
                f"{rows} and N one of 8, both up to 256; K is one of 8"
            )
        if not 1 <= self.consumers <= 3 or self.stages < 2 or self.slots < 1:
            raise ValueError(f"{self}: 1 to 3 consumers, stages from 2, slots from 1")

    @property
    def sharers(self) -> int:
        """How many consumers work on one tile."""
        return 1 if self.takes_turns else self.consumers

    @property
    def rows_of_a_step(self) -> int:
        return 64 * self.sharers

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)

    @property
    def consumer_registers(self) -> int:
        """Registers of a consumer's thread: its share of what the block was launched with (PTX
        ISA, "setmaxnreg": a multiple of 8; 255 is the most that one thread can use).
        """
        launched = REGISTERS // self.threads // 8 * 8 * (self.consumers + 1)
        return min(240, (launched - self.producer_registers) // self.consumers // 8 * 8)

    def piece(self, dtype: Any) -> tuple[int, int]:
        """(M, N) of what a consumer stores at once: rows of 128 bytes, if the tile's N divides
        into such, or less, in whole instructions' columns and whole 16 bytes.
        """
        unit = max(8, 128 // dtype.width)
        fits = [n for n in range(unit, 1024 // dtype.width + 1, unit) if self.tile[1] % n == 0]
        if not fits:
            raise DSLTypeError(
                f"C of {dtype.__name__} goes by {unit} columns; a tile has {self.tile[1]}",
                hint=f"take a tile whose N is a multiple of {unit}",
            )
        return 64, fits[-1]

    def smem_bytes(self, kinds: Kinds) -> int:
        """Shared memory of a block."""
        m, n, k = self.tile
        rows, columns = self.piece(kinds.c)
        loads = self.stages * (m * kinds.a.width + n * kinds.b.width) * k // 8
        return 2048 + loads + self.slots * self.consumers * rows * columns * kinds.c.width // 8


@dataclass(frozen=True)
class Kinds:
    """What the operands are: element types, and which mode is contiguous."""

    a: Any
    b: Any
    c: Any
    major_a: Any
    major_b: Any
    major_c: Any
    is_batched: bool = False

    @property
    def acc(self) -> Any:
        return cute.Int32 if self.a.is_integer else cute.Float32


DEFAULT = Config()

# What `choose` weighs: tiles of C with clusters, stages and slots; whether consumers take turns.
_CANDIDATES: tuple[dict[str, Any], ...] = (
    {"tile": (128, 128), "cluster": (2, 1), "stages": 6, "takes_turns": True, "swizzle": 16},
    {"tile": (128, 192), "cluster": (2, 1), "stages": 4, "slots": 1, "takes_turns": True},
    {"tile": (128, 256), "cluster": (2, 1), "stages": 4},
    {"tile": (128, 128), "stages": 6, "takes_turns": True},
    {"tile": (64, 128), "cluster": (2, 1), "stages": 8, "takes_turns": True},
    {"tile": (64, 128), "stages": 8, "takes_turns": True},
    {"tile": (64, 64), "stages": 10, "takes_turns": True},
)
# Bytes a cycle that each multiprocessor gets from L2 when all of them load: of operands that stay
# there, which half of an H200's 50 MB can, and of others. Measured by what is fast where.
_FROM_L2 = (56, 44)
_KEPT_IN_L2 = 25e6
_EPILOGUE = 1 / 16  # cycles for an element of C


def choose(m: int, n: int, k: int, bits: int, blocks: int) -> Config:
    """A configuration for a product of elements of `bits` on a GPU of `blocks` multiprocessors.

    The one that takes the fewest cycles by a model: so many tiles in turn on each multiprocessor,
    and for each step of 128 bytes of K the multiplications (wgmma does 64 x 256 x 32 bytes in 128
    cycles) or the loads from L2, whichever take longer; and the epilogue, unless the other consumer
    multiplies meanwhile.
    """
    steps = -(-k * bits // 1024)
    from_l2 = _FROM_L2[(m + n) * k * bits / 8 > _KEPT_IN_L2]

    def cycles(candidate: dict[str, Any]) -> float:
        rows, columns = candidate["tile"]
        cm, cn = candidate.get("cluster", (1, 1))
        clusters = -(-m // (rows * cm)) * -(-n // (columns * cn))
        rounds = -(-clusters // max(1, blocks // (cm * cn)))
        loads = 128 * (rows / cn + columns / cm) / from_l2
        tile = steps * max(rows * columns / 32, loads)
        out = rows * columns * _EPILOGUE
        if "takes_turns" in candidate:
            return float(rounds * max(tile, out) + out)
        return float(rounds * (tile + out))

    best = min(_CANDIDATES, key=cycles)
    return Config(**best | {"tile": (*best["tile"], 1024 // bits)})


def shared_layouts(kinds: Kinds, cfg: Config) -> tuple[Any, Any, Any]:
    """A and B by stages, C by slots of each consumer."""
    return (
        sm90.make_smem_layout_a(kinds.major_a, cfg.tile, kinds.a, cfg.stages),
        sm90.make_smem_layout_b(kinds.major_b, cfg.tile, kinds.b, cfg.stages),
        sm90.make_smem_layout_epi(
            kinds.c, kinds.major_c, cfg.piece(kinds.c), cfg.slots * cfg.consumers
        ),
    )


def allocate(smem: Any, dtype: Any, layout: Any) -> Any:
    """Shared memory for tensors of such a layout."""
    # A layout's swizzle counts elements; pointers swizzle addresses of bytes.
    swizzle = cute.recast_layout(8, dtype.width, layout.inner)
    return smem.allocate_tensor(dtype, layout.outer, 1024, swizzle)


@cute.kernel
def gemm_kernel(
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    store_c: tma.TmaAtom,
    tma_c: cute.Tensor,
    schedule: PersistentTileSchedulerParams,
    k_tiles: cute.Int32,
    extras: tuple,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
):
    if cute.const_expr(cfg.overlap):
        # The next kernel may take over multiprocessors as they become free.
        arch.griddepcontrol_launch_dependents()
    layout_a, layout_b, layout_c = shared_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    sa = allocate(smem, kinds.a, layout_a)
    sb = allocate(smem, kinds.b, layout_b)
    sc = allocate(smem, kinds.c, layout_c)

    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    if warp_idx == 0:
        tma.prefetch_descriptor(load_a)
        tma.prefetch_descriptor(load_b)
        tma.prefetch_descriptor(store_c)

    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    turns = None
    if cute.const_expr(cfg.takes_turns):
        turns = pipeline.PipelineOrder.create(
            barrier_storage=smem.allocate_array(cute.Int64, cfg.consumers),
            depth=1,
            length=cfg.consumers,
            group_id=warp_idx // 4 - 1,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
            defer_sync=True,
        )
    loads = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=cfg.stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(
            pipeline.Agent.Thread, (cm + cn - 1) * cfg.sharers * 4
        ),
        tx_count=(bm * kinds.a.width + bn * kinds.b.width) * bk // 8,
        cta_layout_vmnk=cute.make_layout((1, cm, cn, 1)),
    )
    scheduler = StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    if warp_idx < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp_idx == 0:
            produce(loads, scheduler, load_a, tma_a, sa, load_b, tma_b, sb, k_tiles, kinds, cfg)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        consume(
            loads,
            turns,
            scheduler,
            sa,
            sb,
            sc,
            store_c,
            tma_c,
            k_tiles,
            extras,
            kinds,
            cfg,
            epilogue_op,
        )


@cute.jit
def produce(
    loads, scheduler, load_a, tma_a, sa, load_b, tma_b, sb, k_tiles,
    kinds: cute.Constexpr, cfg: cute.Constexpr,
):  # fmt: skip
    """One warp: the tiles of A and B that the consumers will want, in order."""
    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    cta_layout = cute.make_layout((1, cm, cn, 1))
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    at_m, at_n = rank % cm, rank // cm
    ga, gb = cute.zipped_divide(tma_a, (bm, bk)), cute.zipped_divide(tma_b, (bn, bk))
    along_n, along_m = cute.make_layout(cn), cute.make_layout(cm)
    to_a, from_a = tma.tma_partition(load_a, at_n, along_n, cute.group_modes(sa, 0, 2), ga)
    to_b, from_b = tma.tma_partition(load_b, at_m, along_m, cute.group_modes(sb, 0, 2), gb)
    mask_a = mask_b = None
    if cute.const_expr(cn > 1):
        mask_a = tma.create_tma_multicast_mask(cta_layout, (0, at_m, at_n, 0), 2)
    if cute.const_expr(cm > 1):
        mask_b = tma.create_tma_multicast_mask(cta_layout, (0, at_m, at_n, 0), 1)

    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.stages)
    work = scheduler.initial_work_tile_info()
    wait_for_predecessor(cfg)
    while work.is_valid_tile:
        m, n, batch = work.tile_idx
        rest = (batch,) if kinds.is_batched else ()
        for k in cute.range(k_tiles, unroll=1):
            loads.producer_acquire(filled)
            barrier = loads.producer_get_barrier(filled)
            cute.copy(
                load_a,
                from_a[None, (m, k, *rest)],
                to_a[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_a,
            )
            cute.copy(
                load_b,
                from_b[None, (n, k, *rest)],
                to_b[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_b,
            )
            filled.advance()
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    loads.producer_tail(filled)


@cute.jit
def consume(loads, turns, scheduler, sa, sb, sc, store_c, tma_c, k_tiles, extras,
    kinds: cute.Constexpr, cfg: cute.Constexpr, epilogue_op: cute.Constexpr,
):  # fmt: skip
    """A warpgroup: sums of its rows of a tile, the epilogue, and the tile's way to memory."""
    bm, bn, _ = cfg.tile
    consumer = arch.make_warp_uniform(arch.warp_idx()) // 4 - 1
    mine = 0 if cfg.takes_turns else consumer  # which rows of a tile
    majors = kinds.major_a.sm90_mma_major_mode(), kinds.major_b.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(
        kinds.a, kinds.b, *majors, kinds.acc, (cfg.sharers, 1, 1), (64, bn)
    )
    slice_ = mma.get_slice(mine * 128)
    ra = mma.make_fragment_A(slice_.partition_A(sa))
    rb = mma.make_fragment_B(slice_.partition_B(sb))
    acc = mma.make_fragment_C(mma.partition_shape_C((bm, bn)))

    # C leaves in pieces of 64 rows, each an accumulator of a smaller instruction.
    rows, columns = cfg.piece(kinds.c)
    down, across = bm // cfg.rows_of_a_step, bn // columns
    pieces = cute.make_tensor(acc.iterator, cute.make_layout((columns // 2, down * across)))
    one_piece = sm90.make_trivial_tiled_mma(
        kinds.a, kinds.b, *majors, kinds.acc, (1, 1, 1), (rows, columns)
    )
    thread = arch.thread_idx()[0] % 128
    to_smem = cute.make_tiled_copy_C(store_atom(kinds, columns), one_piece)
    staged = to_smem.get_slice(thread).partition_D(sc)
    shape = one_piece.partition_shape_C((rows, columns))
    gc = cute.zipped_divide(tma_c, (rows, columns))
    from_s, to_g = tma.tma_partition(store_c, 0, None, cute.group_modes(sc, 0, 2), gc)
    mine_only = pipeline.NamedBarrier(1 + consumer, 128)
    stores = pipeline.PipelineTmaStore.create(num_stages=cfg.slots)
    is_storer = arch.make_warp_uniform(arch.warp_idx()) % 4 == 0
    slot = 0  # of the next tile's first piece
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    if cute.const_expr(cfg.takes_turns):
        scheduler.advance_to_next_work(advance_count=consumer)
        read.advance(consumer * k_tiles)
    done = read.clone()
    work = scheduler.get_current_work()
    wait_for_predecessor(cfg)
    while work.is_valid_tile:
        if cute.const_expr(turns is not None):
            turns.wait()  # a barrier's parity tells one round of the ring from the next, not more
        mma.set(warpgroup.Field.ACCUMULATE, False)  # the first step replaces what is in acc
        loads.consumer_wait(read)
        multiply(mma, acc, ra, rb, read.index)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        read.advance()
        for _ in cute.range(1, k_tiles, unroll=1):
            loads.consumer_wait(read)
            multiply(mma, acc, ra, rb, read.index)
            read.advance()
            warpgroup.wait_group(1)  # the step before this one is complete
            loads.consumer_release(done)
            done.advance()
        if cute.const_expr(turns is not None):
            turns.arrive()
        warpgroup.wait_group(0)
        loads.consumer_release(done)
        done.advance()

        m, n, batch = work.tile_idx
        rest = (batch,) if kinds.is_batched else ()
        for i in cute.range_constexpr(down * across):
            where = ((m * down + i // across) * cfg.sharers + mine, n * across + i % across, *rest)
            place = consumer * cfg.slots + (slot + i) % cfg.slots
            if is_storer:
                stores.producer_acquire()
            mine_only.arrive_and_wait()  # the slot is free
            values = epilogue.apply_epilogue(
                epilogue_op,
                pieces[None, i].load(),
                operand_pieces(extras, where, one_piece, thread, (rows, columns)),
                kinds.c,
            )
            fragment = cute.make_rmem_tensor(shape, kinds.c)
            fragment.store(values.reshape(shape))
            target = staged[None, None, None, place]
            cute.copy(to_smem, to_smem.retile(fragment), target)
            arch.fence_view_async_shared()
            mine_only.arrive_and_wait()  # the piece is in shared memory
            if is_storer:
                cute.copy(store_c, from_s[None, place], to_g[None, where])
                stores.producer_commit()
        if cute.const_expr(down * across % cfg.slots != 0):
            slot = (slot + down * across) % cfg.slots
        scheduler.advance_to_next_work(advance_count=cfg.consumers // cfg.sharers)
        if cute.const_expr(cfg.takes_turns):
            read.advance((cfg.consumers - 1) * k_tiles)
            done.advance((cfg.consumers - 1) * k_tiles)
        work = scheduler.get_current_work()
    if is_storer:
        stores.producer_tail()


def wait_for_predecessor(cfg: Config) -> None:
    """Global memory is touched when the kernel before this one is complete."""
    if cfg.overlap:
        arch.griddepcontrol_wait()


def multiply(mma: Any, acc: Any, ra: Any, rb: Any, stage: Any) -> None:
    """Issue one step of K."""
    warpgroup.fence()
    at = (None, None, None, stage)
    mma.gemm(acc, ra[at], rb[at], acc)
    warpgroup.commit_group()


def store_atom(kinds: Kinds, columns: int) -> Any:
    """How a thread's part of a piece goes to shared memory."""
    if kinds.c.width != 16:
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kinds.c)
    is_column_major = kinds.major_c is sm90.LayoutEnum.COL_MAJOR
    return cute.make_copy_atom(
        warp.StMatrix8x8x16bOp(is_column_major, 4 if columns % 16 == 0 else 2), kinds.c
    )


def operand_pieces(extras: Any, where: Any, mma: Any, thread: Any, piece: Any) -> list[Any]:
    """A thread's part of each epilogue operand, at the piece of C `where`."""
    if not extras:
        return []
    shape, operands = extras
    last = tuple(i * n + n - 1 for i, n in zip(where, piece, strict=False))
    inside = cute.elem_less(last, shape[:2])
    part = mma.get_slice(thread).partition_C
    coords = part(cute.local_tile(cute.make_identity_tensor(shape), piece, where))
    loaded = []
    for x in operands:
        if isinstance(x, cute.Tensor):
            is_safe = True if epilogue.is_one_number(x) else inside
            values = epilogue.load_operand(
                part(cute.local_tile(x, piece, where)), coords, shape, is_safe
            )
            x = values.reshape((cute.size(values.shape),))
        loaded.append(x)
    return loaded


@cute.jit
def gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr = DEFAULT,
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    stream: cute.Constexpr = None,
):
    """C = A B^T on at most `blocks` resident blocks (a GPU's number of multiprocessors).

    With `epilogue_op`, C = epilogue_op(A B^T, *operands), see `utils.epilogue`. Elements are
    Float16, BFloat16, both 8-bit floats, Int8, Uint8 or Float32, which is rounded to TFloat32; of
    all but the first two, K is contiguous. C may have any type that the sums convert to; the extent
    of its contiguous mode is a multiple of 16 bytes, since TMA writes whole 16 bytes of a row, even
    beyond its end (seen on an H200).
    """
    a, b = as_tf32(a), as_tf32(b)
    kinds = kinds_of(a, b, c)
    check(kinds, cfg)
    along = 1 if kinds.major_c is sm90.LayoutEnum.ROW_MAJOR else 0
    assert c.shape[along] * kinds.c.width % 128 == 0, "rows of C must be multiples of 16 bytes"
    layout_a, layout_b, layout_c = shared_layouts(kinds, cfg)
    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    one = (None, None, 0)
    plain, multicast = tma.CopyBulkTensorTileG2SOp(), tma.CopyBulkTensorTileG2SMulticastOp()
    load_a, tma_a = tma.make_tiled_tma_atom(
        multicast if cn > 1 else plain, a, cute.slice_(layout_a, one), (bm, bk), cn
    )
    load_b, tma_b = tma.make_tiled_tma_atom(
        multicast if cm > 1 else plain, b, cute.slice_(layout_b, one), (bn, bk), cm
    )
    store_c, tma_c = tma.make_tiled_tma_atom(
        tma.CopyBulkTensorTileS2GOp(), c, cute.slice_(layout_c, one), cfg.piece(kinds.c)
    )
    m, n, *batches = c.shape
    tiles = (cute.ceil_div(m, bm), cute.ceil_div(n, bn), *batches, 1)[:3]
    schedule = PersistentTileSchedulerParams(tiles, (cm, cn, 1), cfg.swizzle, cfg.along_m)
    grid = StaticPersistentTileScheduler.get_grid_shape(schedule, maximum(blocks // (cm * cn), 1))
    gemm_kernel(
        load_a,
        tma_a,
        load_b,
        tma_b,
        store_c,
        tma_c,
        schedule,
        cute.ceil_div(a.shape[1], bk),
        (c.shape, operands) if epilogue_op is not None and operands else (),
        kinds,
        cfg,
        epilogue_op,
    ).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(cm, cn, 1),
        stream=stream,
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )


def as_tf32(x: Any) -> Any:
    """Float32 as the instruction takes it: its upper 19 bits."""
    return cute.recast_tensor(x, cute.TFloat32) if x.element_type is cute.Float32 else x


def kinds_of(a: Any, b: Any, c: Any) -> Kinds:
    """The static facts of the operands; DSLTypeError for what does not go together."""
    ranks = {cute.rank(x.layout) for x in (a, b, c)}
    if len(ranks) != 1 or not ranks <= {2, 3}:
        raise DSLTypeError(
            f"a product of {a}, {b} and {c}: A is (M, K), B (N, K) and C (M, N), or all of them "
            "have a last mode of batches"
        )
    majors = [sm90.LayoutEnum.from_tensor(x) for x in (a, b, c)]
    kinds = Kinds(a.element_type, b.element_type, c.element_type, *majors, ranks == {3})
    check_majors(kinds)
    return kinds


def check_majors(kinds: Kinds) -> None:
    """DSLTypeError for operands that wgmma does not read."""
    for name, dtype, major in (("A", kinds.a, kinds.major_a), ("B", kinds.b, kinds.major_b)):
        if dtype.width != 16 and major is not sm90.LayoutEnum.ROW_MAJOR:
            raise DSLTypeError(
                f"{name} of {dtype.__name__} must have K contiguous: wgmma transposes 16-bit "
                "elements only",
                hint="pass a tensor whose K mode has stride 1, or convert to Float16 or BFloat16",
            )


def check(kinds: Kinds, cfg: Config) -> None:
    """DSLTypeError where a block of this configuration does not fit."""
    wanted = cfg.smem_bytes(kinds)
    if wanted > SHARED_MEMORY:
        raise DSLTypeError(
            f"{cfg} takes {wanted} bytes of shared memory; a block has {SHARED_MEMORY}",
            hint="fewer stages, fewer slots, or a smaller tile",
        )
