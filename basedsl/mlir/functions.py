"""Makes `func.func` operations by name: the bindings' classes for the dialect's ops cost time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def new_function(
    ir: Any, name: str, inputs: Sequence[Any], results: Sequence[Any] = (), *, body: bool
) -> Any:
    """Make a `func.func` at the insertion point: with a `body`, which is one empty block; else
    private and declared elsewhere.
    """
    kind = ir.FunctionType.get(list(inputs), list(results))
    attributes = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(kind)}
    if not body:
        attributes["sym_visibility"] = ir.StringAttr.get("private")
    op = ir.Operation.create("func.func", attributes=attributes, regions=1)
    if body:
        op.regions[0].blocks.append(*inputs)
    return op
