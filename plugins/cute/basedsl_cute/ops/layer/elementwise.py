"""Elementwise kernels over compact arrays of one shape: their launches, and their vectors."""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, from_dlpack
from basedsl_cute import arch
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.plan_cache import PlanCache, asked_options

THREADS = 256

_compiled: PlanCache[Any] = PlanCache()


def scaled(x: Any, factor: Any) -> Any:
    """Return `x` times the one element of `factor`, an array of Float32, in the type of `x`."""
    return fill(_launch_scaled, (x,), 1, None, factor)[0]


def fill(launch: Any, given: tuple[Any, ...], results: int, static: Any, *more: Any) -> list[Any]:
    """Return new arrays like the given ones, which `launch(*given, *more, *found, items, static,
    vector, stream)` fills: `items` vectors of `vector` elements. `more` are arrays of other shapes.
    """
    lib = library(given[0], "gated_linear")
    given = tuple(map(lib.compact, given))
    found = [lib.empty(given[0].shape, given[0].dtype, given[0]) for _ in range(results)]
    record = ArrayRecord.of(given[0])
    count = 1
    for extent in record.shape:
        count *= extent
    if not count:
        return found
    width = from_dlpack(*record.dtype).width
    vector = 128 // width
    arrays = (*given, *found)
    while count % vector or any(lib.address(x) % (vector * width // 8) for x in arrays):
        vector //= 2
    items, stream = count // vector, lib.stream(given[0])
    arrays = (*given, *more, *found)
    key = (launch, static, vector, asked_options(), *map(lib.key, arrays))
    compiled = _compiled.get(key)
    if compiled is None:
        made = cute.compile(launch, *arrays, items, static, vector, stream)
        compiled = _compiled.keep(key, made)
    compiled(*arrays, items, stream)
    return found


# Kernels -----------------------------------------------------------------------------------------


def _vector_at(x: Any, item: Any, vector: int) -> Any:
    """The vector number `item` of a compact array."""
    size = vector * x.element_type.width // 8
    address = x.iterator.toint() + item * size
    pointer = cute.make_ptr(x.element_type, address, "gmem", assumed_align=size)
    return cute.make_tensor(pointer, cute.make_layout(vector))


def load_vector(x: Any, item: Any, vector: int) -> Any:
    """Return the vector number `item` of a compact array, in registers."""
    fragment = cute.make_rmem_tensor((vector,), x.element_type)
    cute.autovec_copy(_vector_at(x, item, vector), fragment)
    return fragment.load()


def store_vector(values: Any, x: Any, item: Any, vector: int) -> None:
    """Write `values`, converted, to the vector number `item` of a compact array."""
    fragment = cute.make_rmem_tensor((vector,), x.element_type)
    fragment.store(values.to(x.element_type))
    cute.autovec_copy(fragment, _vector_at(x, item, vector))


@cute.jit
def this_item():
    """Return the number of this thread's vector."""
    return cute.Int64(arch.block_idx()[0]) * THREADS + arch.thread_idx()[0]


@cute.kernel
def scaled_kernel(
    x: cute.Tensor,
    factor: cute.Tensor,
    y: cute.Tensor,
    items: cute.Int64,
    vector: cute.Constexpr,
):
    """Write one vector of `x` times `factor`."""
    item = this_item()
    if item < items:
        values = load_vector(x, item, vector).to(cute.Float32)
        store_vector(values * factor[0], y, item, vector)


@cute.jit
def _launch_scaled(
    x: cute.Tensor,
    factor: cute.Tensor,
    y: cute.Tensor,
    items: cute.Int64,
    static: cute.Constexpr,
    vector: cute.Constexpr,
    stream: cute.Int64,
):
    scaled_kernel(x, factor, y, items, vector).launch(
        grid=cute.ceil_div(items, THREADS).to(cute.Int32),
        block=THREADS,
        stream=cute.Stream(stream.ir_value()),
    )
