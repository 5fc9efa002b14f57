"""Conditions that native code checks before a call, without Python.

A row is `(kind, address, key, expected)`: `call.c` reads memory at `address` in the way that `kind`
names, and compares it with `expected`. If one row of a variant fails, native code does not call the
variant: the next one is tried, then Python.
"""

from __future__ import annotations

# The kinds of rows, as in call.c.
WORD, HALF, ITEM, SIZE, DICT_OF, CALL, LIST_SIZE, LIST_ITEM = range(8)
Row = tuple[int, int, int, int]
