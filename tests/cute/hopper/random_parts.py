"""Random products by `ops.hopper.parallel_split_k`: parts of K by a Hopper kernel, then the sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from random_cases import (
    S32,
    Case,
    Dice,
    Hopper,
    HopperSplit,
    bias_relu,
    cute_type,
    scaled_residual,
    widths,
)

import basedsl_cute as cute
from basedsl_cute.ops.hopper import parallel_split_k
from basedsl_cute.utils.epilogue import per_column, per_row


class Parts:
    """Cases of the other kernels, whose C is the sums, with any C behind them."""

    INNER: ClassVar = {"hopper": Hopper(), "split": HopperSplit()}

    def draw(self, d: Dice, name: str, small: bool) -> Case:
        inner = d.one(*self.INNER)
        kernel = self.INNER[inner]
        while True:
            case = kernel.draw(d, name, small)
            a, b, _ = case.types
            sums = S32 if a.kind in "iu" else np.dtype(np.float32)
            turned = case.transposed
            # The kernel computes C^T = B A^T where C is column-major: operands suit it both ways.
            ways = (
                replace(case, types=(a, b, sums), transposed=(*turned[:2], False)),
                replace(case, types=(b, a, sums), transposed=(turned[1], turned[0], False)),
            )
            if all(map(kernel.fits, ways)):
                break
        parts = d.often(2, 3, 5)
        case = replace(case, batches=d.one(None, 1))
        vector = min(parallel_split_k.VECTOR, widths(d, case)[2])
        more = {"parts": parts, "inner": inner, "vector": vector}
        return replace(case, options=case.options | more)

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        known = ("parts", "inner", "vector")
        options = {name: x for name, x in case.options.items() if name not in known}
        inner = self.INNER[case.options["inner"]].config(replace(case, options=options))
        parts = case.options["parts"]
        config = parallel_split_k.Config(parts, inner, 1 + parts // 3)
        extents = config.workspace(c.shape[0], c.shape[1], case.transposed[2])
        integers = cute_type(case.types[0]).is_integer
        workspace = np.full(extents, -5, np.int32) if integers else np.full(extents, np.nan, "f4")
        operands = {
            "none": (),
            "bias_relu": (extras["bias"],),
            "scaled_residual": (extras["scale"], extras["x"], extras["shift"]),
        }[case.epilogue]
        arguments = (config, case.epilogue, case.options["vector"])
        call(a, b, c, workspace, operands, case.blocks, arguments)


@cute.jit
def call(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    workspace: cute.Tensor,
    operands: tuple,
    blocks: cute.Int32,
    arguments: cute.Constexpr,
):
    config, epilogue, vector = arguments
    op = None
    if cute.const_expr(epilogue == "bias_relu"):
        op, operands = bias_relu, (per_column(operands[0], c.shape),)
    elif cute.const_expr(epilogue == "scaled_residual"):
        op, operands = scaled_residual, (per_row(operands[0], c.shape), operands[1], operands[2])
    parallel_split_k.gemm(a, b, c, workspace, blocks, config, op, operands, vector)
