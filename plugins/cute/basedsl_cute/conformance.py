"""The conformance suite on cute: each program runs as host code, and in one thread of a kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from basedsl import Boolean, Conformance, Float64, Int32, Int64, Node, Numeric, flatten, rebuild
from basedsl_cute.dsl.cute import CUTE

MOST_RESULTS = 32

UNSUPPORTED = {"negative-index": "a coordinate counts from the start of the tensor"}
DIFFERS = {
    "float-errors": "floats follow IEEE 754: a division by zero gives an infinity, not an error",
}


class HostConformance(Conformance):
    """Runs a program as host code."""

    def launch(self, call: Any) -> None:
        call.launch(grid=(1, 1, 1), block=(1, 1, 1))


class KernelConformance(HostConformance):
    """Runs a program in one thread of a kernel; results come back through two tensors."""

    def entry(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        inner = CUTE.jit(fn)
        shapes: list[tuple[Node | None, list[Any]]] = []

        @CUTE.kernel
        def program(ints: Any, floats: Any, args: Any, kwargs: Any) -> None:
            shapes.append(_store_leaves(inner(*args, **kwargs), ints, floats))

        @CUTE.jit
        def host(ints: Any, floats: Any, args: Any, kwargs: Any) -> None:
            program(ints, floats, args, kwargs).launch(grid=(1, 1, 1), block=(1, 1, 1))

        known: dict[Any, tuple[Node | None, list[Any]]] = {}

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            ints, floats = np.zeros(MOST_RESULTS, np.int64), np.zeros(MOST_RESULTS, np.float64)
            host(ints, floats, args, kwargs)
            key = tuple(map(type, args))
            if shapes:
                known[key] = shapes.pop()
                shapes.clear()
            return _load_leaves(*known[key], ints, floats)

        return call


def _store_leaves(result: Any, ints: Any, floats: Any) -> tuple[Node | None, list[Any]]:
    """Write the dynamic leaves; the leaves that come back say where each is."""
    node, leaves = flatten(result)
    kept: list[Any] = []
    for at, leaf in enumerate(leaves):
        if hasattr(type(leaf), "__dsl_result__"):  # a member of an enumeration
            ints[at] = Int32(leaf.ir_value()).to(Int64)
            kept.append(_LeafPlace(_unpacking(leaf.__dsl_result__()), at))
        elif not isinstance(leaf, Numeric):
            kept.append(leaf)
        elif not leaf.is_dynamic:
            kept.append(leaf.value)
        elif type(leaf).is_float:
            floats[at] = leaf.to(Float64)
            kept.append(_LeafPlace(float, at))
        else:
            ints[at] = leaf.to(Int64)
            kept.append(_LeafPlace(bool if type(leaf) is Boolean else int, at))
    return node, kept


def _unpacking(result: Any) -> Callable[[Any], Any]:
    return lambda raw: result.unpack((raw,))


class _LeafPlace:
    """The location of one leaf of the result."""

    __dsl_leaf__ = True

    def __init__(self, kind: Callable[[Any], Any], at: int) -> None:
        self.kind = kind
        self.at = at


def _load_leaves(node: Node | None, leaves: Sequence[Any], ints: Any, floats: Any) -> Any:
    values = [
        leaf.kind((floats if leaf.kind is float else ints)[leaf.at])
        if isinstance(leaf, _LeafPlace)
        else leaf
        for leaf in leaves
    ]
    return values[0] if node is None else rebuild(node, values)


# A GPU's context does not survive a kernel that traps, and kernels here do. Python rounds a * b + c
# twice.
ENVIRONMENT = {"CUTE_DSL_ARCH": "sim", "CUTE_DSL_CONTRACT": "0"}

HOST = HostConformance(
    "cute-host",
    CUTE,
    unsupported=UNSUPPORTED,
    fuzz_share=0.1,
    kernels=True,
    environment=ENVIRONMENT,
)
KERNEL = KernelConformance(
    "cute-kernel",
    CUTE,
    unsupported=UNSUPPORTED,
    differs=DIFFERS,
    raises=False,
    fuzz_share=0.1,
    kernels=True,
    environment=ENVIRONMENT,
)
