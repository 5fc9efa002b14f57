"""Bounds of products with communication: the same kernels without what goes over the link.

`without_bytes` keeps the flags, so that ranks are in step, and moves nothing to the peers;
`without_peers` has no flags either: the tiles in the same order, by the same blocks. Results are
wrong; the time between them and the whole kernel is that of the bytes and of the flags.
"""

import contextlib
from dataclasses import dataclass
from functools import partial

import basedsl_cute as cute
from basedsl_cute.ops.distributed import gather_product, products, scatter_product
from basedsl_cute.ops.distributed.product_parts import ProductPlan


@dataclass(frozen=True)
class PlanWithoutBytes(ProductPlan):
    """A plan of its own, so that its code is not taken for the whole kernel's."""


@dataclass(frozen=True)
class PlanWithoutPeers(ProductPlan):
    """A plan of its own, so that its code is not taken for the whole kernel's."""


@cute.jit
def copy_nothing(source, there, left, pitch, dtype, lines, columns):
    pass


@cute.jit
def wait_for_nothing(w, source, m, turn):
    pass


@cute.jit
def push_nothing(x, w, turn, rows, k, half_bytes, pace, plan):
    pass


@cute.jit
def store_own(exchange, source, where):
    if where[2] == exchange.w.rank:
        own, targets = exchange.stores.own, exchange.targets
        if cute.const_expr(exchange.everywhere):
            cute.copy(own[0], source, targets.own[None, where])
        else:
            cute.copy(own[0], source, targets.own[None, where[:2]])


@cute.jit
def receive_nothing(exchange, epi_store, pieces, tile_idx):
    pass


@cute.jit
def announce_nothing(exchange, epi_store, tile_idx):
    pass


@cute.jit
def copy_no_sums(y, w, turn, shape, half_bytes, plan):
    pass


WITHOUT_BYTES = (
    (gather_product, "copy_part", copy_nothing),
    (scatter_product, "_store_piece", store_own),
    (products, "ProductPlan", PlanWithoutBytes),
)
WITHOUT_PEERS = (
    (gather_product, "_push_shard", push_nothing),
    (gather_product, "_wait_for_rows", wait_for_nothing),
    (scatter_product, "_store_piece", store_own),
    (scatter_product, "_receive", receive_nothing),
    (scatter_product, "_announce", announce_nothing),
    (scatter_product, "_copy_sums", copy_no_sums),
    (products, "ProductPlan", PlanWithoutPeers),
)


@contextlib.contextmanager
def replaced(names):
    """Replace functions of modules, given as (module, name, function)."""
    kept = [getattr(module, name) for module, name, _ in names]
    try:
        for module, name, value in names:
            setattr(module, name, value)
        products._plan.cache_clear()
        yield
    finally:
        for (module, name, _), value in zip(names, kept, strict=True):
            setattr(module, name, value)
        products._plan.cache_clear()


def bounds(space, method, arguments, everywhere=False):
    """Return the contenders of a product: a method of `ProductWorkspace`, by name, on a workspace
    of its own over the memory of `space`.
    """
    found = {}
    kinds = {"without bytes": WITHOUT_BYTES, "without peers": WITHOUT_PEERS}
    for name, names in kinds.items():
        if everywhere and name == "without bytes":
            continue  # sums that no peer stores are waited for
        one = products.ProductWorkspace(
            space.memory, 2 * space.half_bytes, space.blocks, space._launches._stream
        )
        call = partial(getattr(one, method), *arguments)
        found[name] = partial(_call, call, names, [])
    return found


def _call(call, names, called):
    if called:
        call()
        return
    with replaced(names):
        call()
    called.append(True)
