"""`cute.print_tensor`: print all elements of a tensor or vector while the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import DSLTypeError, Float32, Int32, Numeric, current_trace, is_dynamic
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.printf import write
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.tensor_ssa import TensorSSA

_UNROLLED = 64  # rows or columns up to which each gets its own code


@takes_location
def print_tensor(tensor: Any, *, verbose: bool = False) -> None:
    """Print a tensor or a `TensorSSA` with its layout at run time, from every thread that runs it.

    Each coordinate of the first mode is a line, with the second mode along it; further modes follow
    as blocks of such lines. `verbose` prints one line for each element, with its coordinate. Raises
    DSLTypeError for anything else.
    """
    if isinstance(tensor, TensorSSA):
        layout: Any = algebra.make_layout(tensor.shape)
        heading: tuple[Any, ...] = (f"{tensor}",)
    elif isinstance(tensor, Tensor):
        layout = tensor.layout
        while isinstance(layout, algebra.ComposedLayout):
            layout = layout.outer
        heading = (f"tensor<{tensor.iterator} o {{}}>", algebra.Layout(layout.shape, layout.stride))
        if tensor.layout is not layout or not tensor.has_memory:
            heading = (str(tensor),)
    else:
        raise DSLTypeError(f"print_tensor takes a tensor, got {type(tensor).__name__}")
    write(heading[0].replace("%", "%%") + ":\n", *heading[1:])
    modes = algebra.product_each(
        layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    )
    static = isinstance(tensor, TensorSSA) or tensor.memspace == "rmem"
    show = _verbose if verbose else _rows
    _each(modes[2:], (), lambda rest: show(tensor, modes[:2], rest, static), static)


def _verbose(tensor: Any, modes: Any, rest: tuple[Any, ...], static: bool) -> None:
    def one(coord: tuple[Any, ...]) -> None:
        at = coord + rest
        places = ",".join("{}" for _ in at)
        write(f"  ({places}) = {{}}\n", *at, _element(tensor, at))

    _each(modes, (), one, static)


def _rows(tensor: Any, modes: Any, rest: tuple[Any, ...], static: bool) -> None:
    if rest:
        places = ",".join("{}" for _ in rest)
        write(f" (_,_,{places}):\n", *rest)
    columns = modes[1] if len(modes) > 1 else 1

    def row(coord: tuple[Any, ...]) -> None:
        if not is_dynamic(columns) and columns <= _UNROLLED:
            values = [
                _element(tensor, coord + ((c,) if len(modes) > 1 else ()) + rest)
                for c in range(columns)
            ]
            write("  " + " ".join("{}" for _ in values) + "\n", *values)
            return
        write("  ")
        _each((columns,), coord, lambda at: write("{} ", _element(tensor, at + rest)), static)
        write("\n")

    _each(modes[:1], (), row, static)


def _element(tensor: Any, coord: tuple[Any, ...]) -> Any:
    nested = isinstance(tensor.shape, tuple)
    value = tensor[coord if nested else coord[0]]
    if isinstance(value, Numeric) and type(value).is_float and not type(value).format.arithmetic:
        return value.to(Float32)
    return value


def _each(
    extents: Any, before: tuple[Any, ...], body: Callable[[tuple[Any, ...]], None], static: bool
) -> None:
    """Emit `body` for every coordinate, with the first mode in the outermost loop."""
    if not extents:
        body(before)
        return
    extent, *rest = extents
    if not is_dynamic(extent) and (static or extent <= _UNROLLED):
        for i in range(extent):
            _each(rest, (*before, i), body, static)
        return
    trace = current_trace("print_tensor()")
    loc = trace.loc()

    def test(carried: Any) -> tuple[Any, list[Any]]:
        holds = Int32.from_value(carried[0]) < extent
        return holds.ir_value(), list(carried)

    def step(carried: Any) -> list[Any]:
        i = Int32.from_value(carried[0])
        _each(rest, (*before, i), body, static)
        return [(i + 1).ir_value()]

    trace.emitter.while_([Int32(0).ir_value()], test, step, loc)
