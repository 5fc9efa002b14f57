"""Kernels: a @kernel function that a @jit function launches becomes a function of its own.

`Language.launch` returns an object on which the program calls `launch`; that traces the kernel with
`trace_kernel`, into whatever operation the DSL has for kernels, and emits the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.location import Span, span_of_return
from basedsl.numeric import Numeric, as_numeric
from basedsl.pytree import Node, flatten, leaf_paths, rebuild
from basedsl.tracing import Trace

Opened = Callable[[str, list[Any], list[Any]], AbstractContextManager[Sequence[Any]]]


def as_kernel_argument(leaf: Any, path: str) -> Any:
    """Return a leaf of a kernel's argument as a value of run time: a number of the DSL, an object
    with `ir_value` and `with_ir_value`, or the value of a parameter that is a Python number. None
    for what is known while compiling, such as the Python numbers in a tuple: it is captured.

    `path` tells where the leaf is, from the parameter's name on: "n", "sizes[0]", "shape.rows".
    """
    if isinstance(leaf, Numeric) or hasattr(type(leaf), "with_ir_value"):
        return leaf
    if type(leaf) in (bool, int, float) and not path.endswith("]") and "." not in path:
        return as_numeric(leaf)
    return None


def in_kernel(leaf: Any, value: Any) -> Any:
    """Return the kernel's own form of a leaf that is passed to it as the SSA value `value`."""
    return type(leaf).from_value(value) if isinstance(leaf, Numeric) else leaf.with_ir_value(value)


def trace_kernel(
    trace: Trace,
    kernel: Any,
    values: Sequence[Any],
    opened: Opened,
    *,
    span: Span | None = None,
    argument: Callable[[Any, str], Any] = as_kernel_argument,
    inside: Callable[[Any, Any], Any] = in_kernel,
) -> tuple[str, list[Any]]:
    """Trace the body of `kernel` apart from the host code that launches it, of which `trace` is.

    `values` are the arguments, one for each parameter. Their numbers and objects of run time become
    the kernel's parameters (`argument` says which), and `inside` makes what its body sees of them;
    all else is captured. `opened(symbol, types, passed)` is a context manager: it makes the
    kernel's operation with parameters of these types, for these numbers and objects, sets the
    insertion point in it, and gives the SSA values of its parameters; it ends the body. `span` is
    the launch.

    Returns the kernel's symbol, and the SSA values that the launch passes. Raises DSLTypeError for
    a kernel that returns something.
    """
    flat: list[tuple[Node | None, list[Any], list[Any]]] = []
    every: list[Any] = []
    for value, parameter in zip(values, kernel.signature.parameters, strict=True):
        if parameter.is_constexpr:
            flat.append((None, [value], [None]))
            continue
        node, leaves = flatten(value)
        paths = leaf_paths(node, parameter.name)
        passed = [argument(leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
        every += [one for one in passed if one is not None]
        flat.append((node, leaves, passed))
    operands = [one.ir_value() for one in every]
    symbol = _fresh_symbol(trace, kernel.symbol)
    outer = trace.function_kind, trace.function_name, trace.region
    trace.function_kind, trace.function_name = "kernel", kernel.fn.__qualname__
    try:
        with (
            trace.apart(),
            trace.inside("kernel", span),
            opened(symbol, [value.type for value in operands], every) as parameters,
        ):
            given = iter(parameters)
            arguments = [
                _rebuilt(node, leaves, passed, given, inside) for node, leaves, passed in flat
            ]
            positional, named = kernel.signature.spread(arguments)
            staged = kernel.staged_in(trace)
            with trace.body_of(staged):
                result = staged(*positional, **named)
            if result is not None:
                raise DSLTypeError(
                    f"the kernel '{kernel.fn.__qualname__}' returns a value; kernels return none",
                    span_of_return(kernel.fn),
                    hint="write results into a tensor",
                )
    finally:
        trace.function_kind, trace.function_name, trace.region = outer
    return symbol, operands


def _rebuilt(
    node: Node | None,
    leaves: Sequence[Any],
    passed: Sequence[Any],
    given: Iterator[Any],
    inside: Callable[[Any, Any], Any],
) -> Any:
    """Return an argument as the kernel sees it, its leaves of run time made of `given`."""
    pairs = zip(leaves, passed, strict=True)
    return rebuild(node, [leaf if one is None else inside(one, next(given)) for leaf, one in pairs])


def _fresh_symbol(trace: Trace, symbol: str) -> str:
    """Return the symbol, with a number behind it if the trace has a kernel of that name already."""
    taken, number = symbol, 1
    while taken in trace.kernel_symbols:
        taken, number = f"{symbol}_{number}", number + 1
    trace.kernel_symbols.add(taken)
    return taken
