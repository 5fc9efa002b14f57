"""Counts of memory transactions: sectors and lines of global memory, wavefronts of shared memory.

Addresses are in bytes, `(warps, 32)`, with the lanes that make an access in a mask of that shape;
results have an entry per warp. The sizes are those of every architecture from sm_50 on.

A lane's access lies within one 32-byte sector, since its address is a multiple of its size, at most
16 bytes. Shared memory has 32 banks of 4 bytes: in one wavefront, each bank serves one word, to
however many lanes. Accesses of 16 bytes are served by half warps, ldmatrix and stmatrix one matrix
of eight rows after another, all others whole: so counts Nsight Compute on an H200, where 16 bytes
that all lanes read take two wavefronts and 8 bytes one (`bench/gpu/counters.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

SECTOR = 32
LINE = 128
BANKS = 32
WORD = 4
_NOBODY = np.iinfo(np.int64).max


def distinct(keys: Any, mask: Any) -> Any:
    """The number of different keys among the lanes of `mask`, for each row."""
    keys = np.sort(np.where(mask, keys, _NOBODY), axis=1)
    new = keys[:, 1:] != keys[:, :-1]
    return (new & (keys[:, 1:] != _NOBODY)).sum(axis=1) + (keys[:, 0] != _NOBODY)


def sectors(addresses: Any, mask: Any) -> Any:
    """The 32-byte sectors of global memory that each warp touches."""
    return distinct(addresses // SECTOR, mask)


def lines(addresses: Any, mask: Any) -> Any:
    """The 128-byte lines of global memory that each warp touches."""
    return distinct(addresses // LINE, mask)


def ideal_sectors(addresses: Any, mask: Any, size: int) -> Any:
    """The fewest sectors that hold as many different bytes as each warp touches."""
    return -(-distinct(addresses // size, mask) * size // SECTOR)


def wavefronts(addresses: Any, mask: Any, size: int, rows_each: int = 0) -> tuple[Any, Any]:
    """The wavefronts of each warp's access to shared memory, and the fewest that could serve as
    many different words of each part of the warp. `rows_each` is the rows of a matrix (ldmatrix).
    """
    warps = len(addresses)
    each = max(size // WORD, 1)
    parts = addresses.shape[1] // rows_each if rows_each else max(each // 2, 1)
    words = addresses // WORD
    mask = mask.reshape(warps * parts, -1)
    words = words.reshape(warps * parts, -1)
    if each > 1:
        words = (words[:, :, None] + np.arange(each)).reshape(warps * parts, -1)
        mask = np.repeat(mask, each, axis=1)
    rows = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
    keys = np.sort(np.where(mask, words, -1), axis=1)  # equal words stand beside each other
    seen = np.empty(keys.shape, np.bool_)
    seen[:, 0] = keys[:, 0] >= 0
    seen[:, 1:] = (keys[:, 1:] != keys[:, :-1]) & (keys[:, 1:] >= 0)
    per_bank = np.bincount((rows * BANKS + keys % BANKS)[seen], minlength=len(rows) * BANKS)
    needed = per_bank.reshape(-1, BANKS).max(axis=1)
    fewest = -(-seen.sum(axis=1) // BANKS)
    return needed.reshape(warps, parts).sum(axis=1), fewest.reshape(warps, parts).sum(axis=1)
