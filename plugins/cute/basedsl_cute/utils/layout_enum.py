"""Which mode of a matrix is contiguous, and what that makes of it as an operand."""

from __future__ import annotations

import enum
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute.nvgpu.warpgroup import OperandMajorMode


class LayoutEnum(enum.Enum):
    """Row-major: mode 1 is contiguous (K of A and B, N of C). Column-major: mode 0 is."""

    ROW_MAJOR = "row-major"
    COL_MAJOR = "column-major"

    @staticmethod
    def from_tensor(tensor: Any) -> LayoutEnum:
        """From the mode of stride 1."""
        if not hasattr(tensor, "leading_dim"):
            raise DSLTypeError(f"LayoutEnum.from_tensor takes a tensor, not {tensor!r}")
        leading = tensor.leading_dim
        if leading not in (0, 1):
            raise DSLTypeError(
                f"neither of the first two modes of {tensor} is known to be contiguous",
                hint="pass an array with one stride of 1, or say which mode it is: "
                "from_dlpack(x).mark_layout_dynamic(leading_dim=)",
            )
        return LayoutEnum.ROW_MAJOR if leading == 1 else LayoutEnum.COL_MAJOR

    def sm90_mma_major_mode(self) -> OperandMajorMode:
        """As operand A (M, K) or B (N, K) of wgmma."""
        return OperandMajorMode.K if self is LayoutEnum.ROW_MAJOR else OperandMajorMode.MN

    mma_major_mode = sm90_mma_major_mode

    def is_k_major_a(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        return self is LayoutEnum.COL_MAJOR

    def is_k_major_b(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_n_major_b(self) -> bool:
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        return self is LayoutEnum.COL_MAJOR
