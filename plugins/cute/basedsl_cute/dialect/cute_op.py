"""The base of the declarations of the `cute` dialect's operations."""

from __future__ import annotations

from typing import Any

from basedsl import OpView

Value = Any  # ir.Value or ir.Type: the bindings have no types


class CuteOp(OpView, dialect="cute"):
    """The operations of `cute`; `OPS` has them by name."""


OPS = CuteOp.declared
