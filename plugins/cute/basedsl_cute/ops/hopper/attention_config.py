"""The static configuration of attention on Hopper, and what it must be like."""

from __future__ import annotations

from dataclasses import dataclass

from basedsl import DSLTypeError

ROWS = 64  # of a warpgroup's wgmma


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel.

    `tile` is (queries, keys): 64 queries for each consumer warpgroup. `stages` is the number of
    tiles of keys, and of values, in shared memory, `query_stages` that of tiles of queries. With
    `turns` the warpgroups start their products one after the other, so that one makes weights while
    the other multiplies. A block that is `persistent` has many tiles of queries, whose keys are
    loaded while it writes another; those of a head follow each other if `by_head`. With `between`,
    sums are scaled between the two products of a tile of keys, while the tensor cores work on the
    first; with `pinned`, weights are summed under the exponentials: both take a few registers more.
    Results are written in vectors of 16 bytes if `is_wide`, to which their rows are aligned then.
    Of each eight columns of scores, the last `late` are made into weights behind the wait for the
    values, so that the conversion of the others runs under their exponentials. With `ahead` warps
    wait for the next keys and values before their turn. Of each eight weights of 8 bits,
    `computed` are made by multiplications, since their exponentials take longer than products; with
    `by_products` weights are summed by products with ones (`ops.hopper.attention_sums`), after
    they are rounded: the logarithms of sums are coarser. Of each eight such weights of bases with
    `slack`, `in_halves` are made by two straight lines, half a percent off, and `in_lines` by one,
    2 % off (`ops.flash.half_powers`), but for those of a task's first tile. With `by_bits` the
    largest scores are found as integers, three at a time (`ops.flash.softmax.largest_by_bits`).
    With `overlaps` the first scores of the next tile of queries are multiplied while the results of
    this one are written. If it is `early`, the kernel begins while the one that turns values of
    8 bits ends. With
    `slack`, steps (first key, exponent), bases of exponents of 8 bits are raised so far above the
    largest scores, and stay until one is above them (`ops.hopper.attention_lazy`): keys are counted
    as they are loaded, and the first step is of key 0. Tiles of queries begin with the first query,
    or `from_end` end with the last one: with a causal mask it is the tile of few keys then that may
    have less queries than others. With `by_groups` a warpgroup passes by the tiles of keys, and
    masks no others, that its own queries do not see. Values of 8 bits are copied as a whole tile if
    they are turned `in_blocks` (`ops.flash.turn`), or by TMA, in rows of 32 bytes if the tile has
    an odd number of 32 keys. Tasks that do not fill a round of the blocks are cut along the keys
    into a piece for each block if it `shares_last` (`ops.hopper.attention_shares`), where all see
    the same keys.
    `box` is 0, or for packed and paged sequences the keys of one load: a divisor of the tile's
    keys, and of the rows of a page.
    """

    tile: tuple[int, int] = (128, 128)
    stages: int = 2
    query_stages: int = 1
    turns: bool = False
    persistent: bool = False
    by_head: bool = False
    between: bool = True
    pinned: bool = True
    is_wide: bool = True
    box: int = 0
    late: int = 0
    ahead: bool = False
    computed: int = 0
    in_halves: int = 0
    in_lines: int = 0
    by_products: bool = False
    by_bits: bool = False
    overlaps: bool = False
    early: bool = False
    slack: tuple[tuple[int, float], ...] = ()
    from_end: bool = False
    by_groups: bool = False
    in_blocks: bool = False
    shares_last: bool = False

    @property
    def groups(self) -> int:
        """The number of consumer warpgroups."""
        return self.tile[0] // ROWS

    @property
    def threads(self) -> int:
        return 128 * (self.groups + 1)

    def registers(self, has_mask: bool) -> tuple[int, int]:
        """Registers of a thread of the producer and of a consumer, with a mask of the user's or
        without.
        """
        if has_mask and self.groups == 2:
            return 56, 224  # the producer looks for tiles
        if (self.box or self.shares_last) and self.groups == 2:
            return 40, 232  # it finds the places of boxes, or of pieces of tasks
        return {1: (56, 256), 2: (24, 240), 3: (32, 160)}[self.groups]

    def smem_bytes(self, head: int, head_v: int, width: int = 16) -> int:
        """Shared memory of a block in bytes, without barriers, for heads of these extents, and
        elements of `width` bits.
        """
        m, n = self.tile
        return width // 8 * (self.query_stages * m * head + self.stages * n * (head + head_v))


def takes_shares(config, variant):
    """True if tasks of a configuration may be cut: all see the same keys."""
    is_bounded = variant.left is not None or variant.right is not None
    is_changed = is_bounded or variant.is_scored or variant.mask is not None
    return config.persistent and not config.box and not is_changed


def check_config(cfg, dtype, variant, is_packed):
    """Raise DSLTypeError for a configuration that elements of `dtype`, a variant, or packed or
    paged sequences have no kernel for.
    """
    (m, n), step = cfg.tile, 256 // dtype.width
    if m % ROWS or not 1 <= cfg.groups <= 3 or n % step or n > 256:
        raise DSLTypeError(
            f"attention on Hopper has no tile {cfg.tile}",
            hint=f"queries are 64, 128 or 192, keys a multiple of {step} up to 256",
        )
    if (cfg.computed or cfg.by_products or cfg.early) and dtype.width != 8:
        raise DSLTypeError(
            f"attention on Hopper computes or sums no weights of {dtype.__name__} by products, nor "
            "begins early with them",
            hint="computed=, by_products= and early= are for elements of 8 bits",
        )
    has_sums = cfg.slack and cfg.by_products and not cfg.computed
    by_lines = cfg.in_halves + cfg.in_lines
    is_share = min(cfg.in_halves, cfg.in_lines) >= 0 and by_lines <= 8
    if not is_share or (by_lines and not has_sums):
        raise DSLTypeError(
            f"attention on Hopper makes no weights by straight lines with {cfg}",
            hint="in_halves= and in_lines= are together up to 8, and need slack=, by_products=True "
            "and computed=0",
        )
    if cfg.slack and dtype.width != 8:
        raise DSLTypeError(
            f"attention on Hopper has no slack of bases for {dtype.__name__}",
            hint="slack= is for elements of 8 bits",
        )
    if cfg.slack and (cfg.between or not is_slack(cfg.slack)):
        raise DSLTypeError(
            f"attention on Hopper has no slack of bases with {cfg}",
            hint="slack= needs between=False, and steps (first key, exponent of two from 0 to 8), "
            "the first one of key 0",
        )
    if cfg.from_end and (is_packed or variant.is_scored or variant.mask is not None):
        raise DSLTypeError(
            "attention on Hopper has no tiles from the end of packed sequences or with functions",
            hint="from_end= is for scaled products, and sequences of one length",
        )
    if cfg.by_groups and (cfg.turns or variant.mask is not None):
        raise DSLTypeError(
            f"attention on Hopper has no warpgroups that pass by tiles with {cfg}",
            hint="by_groups= is for no turns=, and no mask= of the user's",
        )
    if cfg.in_blocks and (dtype.width != 8 or n % 64 == 0):
        raise DSLTypeError(
            f"attention on Hopper has no values in blocks with {cfg}",
            hint="in_blocks= is for elements of 8 bits, and tiles of 32, 96, 160 or 224 keys",
        )
    if cfg.shares_last and not takes_shares(cfg, variant):
        raise DSLTypeError(
            f"attention on Hopper shares no last tasks with {cfg}, or where masks hide keys",
            hint="shares_last= needs persistent=, scaled products, and queries that see all keys",
        )
    if cfg.overlaps and (cfg.turns or cfg.query_stages < 2):
        raise DSLTypeError(
            f"attention on Hopper has no overlap of tiles of queries with {cfg}",
            hint="overlaps= needs query_stages=2, and no turns=",
        )
    is_boxed = cfg.box and cfg.box % 8 == 0 and n % cfg.box == 0
    if is_packed and (not is_boxed or dtype.width != 16):
        raise DSLTypeError(
            f"attention on Hopper has no packed or paged sequences with {cfg}",
            hint="box= is a multiple of 8 that divides the tile's keys; elements have 16 bits",
        )


def is_slack(steps):
    """True if these are steps of slack: the first of key 0, the others in their order."""
    firsts = [first for first, _ in steps]
    return firsts[0] == 0 and firsts == sorted(set(firsts)) and all(0 <= x <= 8 for _, x in steps)
