"""Conditions that native code checks before a call, without Python.

A row is `(kind, address, key, expected)`: `call.c` compares what it finds at `address`, in the way
that `kind` names, with `expected`. All rows of a variant hold, or another way of calling decides.
"""

from __future__ import annotations

# The kinds of rows, as in call.c.
WORD, HALF, ITEM, SIZE, DICT_OF, CALL, LIST_SIZE, LIST_ITEM = range(8)
Row = tuple[int, int, int, int]
