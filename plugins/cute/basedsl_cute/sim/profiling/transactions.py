"""Counts of memory transactions: sectors and lines of global memory, wavefronts of shared memory.

Addresses are in bytes, `(warps, 32)`, with the lanes that make an access in a mask of that shape;
results have an entry per warp. The sizes are those of every architecture from sm_50 on.

A lane's access lies within one 32-byte sector, since its address is a multiple of its size, at most
16 bytes. Shared memory has 32 banks of 4 bytes: in one wavefront, each bank serves one word, to
however many lanes. Accesses of 8 bytes are served by half warps, those of 16 bytes by quarter
warps (CUDA C++ Programming Guide, "Shared Memory", for 3.x on; the quarters are those of Nsight
Compute's documentation, "Memory Tables").
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


def wavefronts(addresses: Any, mask: Any, size: int) -> tuple[Any, Any]:
    """The wavefronts of each warp's access to shared memory, and the fewest there could be: one for
    each part of the warp that has an active lane.
    """
    warps = len(addresses)
    parts = max(size // WORD, 1)
    words = addresses // WORD
    mask = mask.reshape(warps * parts, -1)
    words = words.reshape(warps * parts, -1)
    if parts > 1:
        words = (words[:, :, None] + np.arange(parts)).reshape(warps * parts, -1)
        mask = np.repeat(mask, parts, axis=1)
    rows = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
    keys = np.sort(np.where(mask, words, -1), axis=1)  # equal words stand beside each other
    seen = np.empty(keys.shape, np.bool_)
    seen[:, 0] = keys[:, 0] >= 0
    seen[:, 1:] = (keys[:, 1:] != keys[:, :-1]) & (keys[:, 1:] >= 0)
    per_bank = np.bincount((rows * BANKS + keys % BANKS)[seen], minlength=len(rows) * BANKS)
    needed = per_bank.reshape(-1, BANKS).max(axis=1)
    fewest = (needed > 0).astype(np.int64)
    return needed.reshape(warps, parts).sum(axis=1), fewest.reshape(warps, parts).sum(axis=1)
