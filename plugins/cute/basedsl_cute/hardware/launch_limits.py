"""Limits of a launch, and the one check of them: for static and dynamic launches, on every target.

Callers raise an error of their own class, at the line that they know, with the text from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from basedsl_cute.hardware.targets import MAX_CLUSTER, MAX_THREADS_PER_BLOCK, STATIC_SMEM

Extents = Sequence[int | None]  # in x, y and z; None for one that is known only when it runs


class LaunchLimits(NamedTuple):
    """The most that a launch may ask of a device: blocks of the grid and threads of a block in x, y
    and z, threads and bytes of shared memory of a block, blocks of a cluster. By default what every
    architecture has (CUDA C++ Programming Guide, "Technical Specifications per Compute
    Capability"), and the shared memory that needs no opting in.
    """

    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    block: tuple[int, int, int] = (MAX_THREADS_PER_BLOCK, MAX_THREADS_PER_BLOCK, 64)
    threads: int = MAX_THREADS_PER_BLOCK
    smem: int = STATIC_SMEM
    cluster: int = MAX_CLUSTER


class LaunchProblem(NamedTuple):
    """Why a launch is impossible, and what to do about it."""

    message: str
    hint: str | None = None


def three_extents(
    name: str, given: Any, is_integer: Callable[[Any], bool]
) -> tuple[Any, Any, Any] | LaunchProblem:
    """Return `given`, an integer or one to three of them, as extents in x, y and z; a problem if
    `is_integer` refuses one.
    """
    extents = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not 1 <= len(extents) <= 3:
        return LaunchProblem(
            f"{name} takes one to three integers, got {given!r}",
            f"write {name}=(x, y, z), or {name}=x",
        )
    for axis, extent in zip("xyz", extents, strict=False):
        if not is_integer(extent):
            return LaunchProblem(
                f"{name} {axis} must be an integer, got {type(extent).__name__}",
                "divide with // for a whole number, or with cute.ceil_div(a, b)",
            )
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def launch_problem(
    limits: LaunchLimits,
    grid: Extents,
    block: Extents,
    cluster: Sequence[int] | None = None,
    smem: int | None = None,
) -> LaunchProblem | None:
    """Return the first limit that a launch breaks, or None. `smem` is in bytes for a block; None
    where nobody knows it yet.
    """
    three = (limits.cluster,) * 3
    checked: list[tuple[str, Extents, Sequence[int]]] = [
        ("grid", grid, limits.grid),
        ("block", block, limits.block),
        *([("cluster", cluster, three)] if cluster is not None else ()),
    ]
    for name, extents, most in checked:
        for axis, extent, limit in zip("xyz", extents, most, strict=True):
            if extent is not None and not 1 <= extent <= limit:
                return LaunchProblem(
                    f"{name}={_text(extents)} has {extent} in {axis}; it must be 1 to {limit}",
                    _hint(name, extent),
                )
    threads = None if None in block else math.prod(n for n in block if n is not None)
    if threads is not None and threads > limits.threads:
        return LaunchProblem(
            f"block={_text(block)} has {threads} threads; a block has at most {limits.threads}",
            "use a smaller block, and more blocks in the grid",
        )
    if smem is not None and not 0 <= smem <= limits.smem:
        return LaunchProblem(
            f"a block asks for {smem} bytes of shared memory; it can have 0 to {limits.smem}",
            "use smaller tiles or fewer stages; without smem=, it is what the kernel allocates",
        )
    if cluster is None:
        return None
    if math.prod(cluster) > limits.cluster:
        return LaunchProblem(
            f"cluster={_text(cluster)} has {math.prod(cluster)} blocks; a cluster has at most "
            f"{limits.cluster}",
            "use a smaller cluster",
        )
    if any(g is not None and g % c for g, c in zip(grid, cluster, strict=True)):
        return LaunchProblem(
            f"cluster={_text(cluster)} does not divide grid={_text(grid)}",
            "make each extent of the grid a multiple: cute.round_up(blocks, cluster)",
        )
    return None


_MORE = {
    "block": "use fewer threads a block and more blocks: grid=cute.ceil_div(n, threads)",
    "grid": "let a thread do several elements, in a loop",
}
_EMPTY = "an empty tensor needs no launch: guard it with `if n > 0:`"


def _hint(name: str, extent: int) -> str | None:
    if extent > 0:
        return _MORE.get(name)
    return (
        _EMPTY if name == "grid" and extent == 0 else "extents count blocks or threads: 1 or more"
    )


def _text(extents: Extents) -> str:
    return f"({', '.join('?' if n is None else str(n) for n in extents)})"
