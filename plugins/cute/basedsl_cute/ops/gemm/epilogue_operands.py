"""The operands of an epilogue, as `matmul` is given them: by its keywords, or by `operands`."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl import DSLTypeError, with_article
from basedsl_cute.ops.array_libraries import ArrayLibrary

NOTHING: tuple[Any, ...] = ()
"""The default of `operands`."""


def is_array(x: Any) -> bool:
    """Return True for an array, False for a number."""
    return not isinstance(x, int | float)


def epilogue_operands(
    lib: ArrayLibrary,
    a: Any,
    bias: Any,
    residual: Any,
    alpha: Any,
    epilogue: Any,
    operands: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Return the epilogue's operands, in the order of `FusedEpilogue` or of the user's function.

    `a` is the product's first operand; the others are the keywords of `matmul`. Raises DSLTypeError
    for keywords that contradict each other.
    """
    if alpha is bias is residual is epilogue is None and operands is NOTHING:
        return ()
    if isinstance(alpha, int | np.generic):
        alpha = float(alpha)
    # Numbers are Float32 in kernels, arrays what they are.
    is_wide = str(a.dtype).endswith("float64")
    if is_wide:
        alpha = _in_float64(lib, a, alpha)
    own = tuple([x for x in (alpha, bias, residual) if x is not None])
    if not isinstance(operands, tuple | list):
        raise DSLTypeError(
            f"operands= is {with_article(type(operands))}",
            hint="pass a tuple of arrays and numbers: operands=(x,)",
        )
    if epilogue is None:
        if len(operands):
            raise DSLTypeError("operands= are those of an epilogue", hint="pass epilogue= too")
        return own
    if own:
        raise DSLTypeError(
            "an epilogue replaces bias, residual and alpha",
            hint="take them as operands: epilogue=lambda sums, bias: ..., operands=(bias,)",
        )
    given = [x.item() if isinstance(x, np.generic) else x for x in operands]
    return tuple([_in_float64(lib, a, x) for x in given] if is_wide else given)


def _in_float64(lib: ArrayLibrary, like: Any, x: Any) -> Any:
    """An array of the number, if it is one."""
    if not isinstance(x, float):
        return x
    made = lib.empty((1,), like.dtype, like)
    made[...] = x
    return made
