"""The values of lengths and tables, where the host can read them: on a GPU nothing checks them."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl import DSLTypeError
from basedsl_cute.ops.array_libraries import ArrayLibrary, known_libraries
from basedsl_cute.ops.flash.arguments import LENGTHS, Lengths


def check_values(
    lib: ArrayLibrary, lengths: Lengths, q: Any, k: Any, most: tuple[Any, Any], layout: Any
) -> None:
    """Raise DSLTypeError for lengths, or pages of a table, beyond their arrays. What is no array of
    the right type and modes is passed over: that is said where a plan is made.
    """
    if any(known_libraries.get(type(x)) is not lib for x in (q, k)):
        return
    values = [_elements(lib, x, name) for x, name in zip(lengths, LENGTHS, strict=True)]
    starts_q, starts_k, used, table = values
    sizes = None
    for name, starts, x, longest in (("q", starts_q, q, most[0]), ("k", starts_k, k, most[1])):
        if starts is not None and len(starts) and len(x.shape) == 3:
            sizes = _sizes(name, starts, x, longest)
    if used is None or len(k.shape) != (4 if starts_k is None else 3):
        return
    if lengths.table is not None:
        if table is None or len(table) != len(used):
            return
        has = np.full(len(table), table.shape[1] * k.shape[1])
    elif starts_k is not None:
        has = sizes
    else:
        has = np.full(len(used), k.shape[2 if layout == "bhsd" else 1])
    if has is None or len(has) != len(used):
        return
    wrong = np.flatnonzero((used < 0) | (used > has))
    if len(wrong):
        n = wrong[0]
        raise DSLTypeError(f"attention: seqused_k is {used[n]} for sequence {n} of {has[n]} keys")
    if table is not None:
        _check_pages(table, used, k)


def _elements(lib: ArrayLibrary, x: Any, name: str) -> np.ndarray | None:
    if x is None or known_libraries.get(type(x)) is not lib:
        return None
    found = lib.elements(x)
    modes = 2 if name == "block_table" else 1
    suits = found is not None and found.dtype == np.int32 and found.ndim == modes
    return found if suits else None


def _sizes(name: str, starts: np.ndarray, x: Any, longest: Any) -> np.ndarray:
    """The rows of each sequence."""
    sizes = np.diff(starts)
    if starts[0] < 0 or (sizes < 0).any():
        raise DSLTypeError(
            f"attention: cu_seqlens_{name} has places below 0, or not in order",
            hint="where each sequence begins, from 0 on, and the end of the last one",
        )
    if starts[-1] > x.shape[0]:
        raise DSLTypeError(
            f"attention: cu_seqlens_{name} ends at {starts[-1]}, and {name} has {x.shape[0]} rows"
        )
    if isinstance(longest, int | np.integer) and sizes.max(initial=0) > longest:
        raise DSLTypeError(
            f"attention: max_seqlen_{name} is {longest}, and a sequence has {sizes.max()} rows"
        )
    return sizes


def _check_pages(table: np.ndarray, used: np.ndarray, k: Any) -> None:
    pages, rows = k.shape[:2]
    in_use = np.arange(table.shape[1]) * rows < used[:, None]
    wrong = np.argwhere(in_use & ((table < 0) | (table >= pages)))
    if len(wrong):
        batch, column = wrong[0]
        raise DSLTypeError(
            f"attention: block_table has page {table[batch, column]} for sequence {batch}, and "
            f"there are {pages}"
        )
