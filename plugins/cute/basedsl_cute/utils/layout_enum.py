"""The major mode of a matrix: which mode is contiguous, and the operand that it makes."""

from __future__ import annotations

import enum
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute.nvgpu.warpgroup import OperandMajorMode


class LayoutEnum(enum.Enum):
    """The major mode of a matrix. Row-major: mode 1 is contiguous (K of A and B, N of C).

    Column-major: mode 0 is contiguous (M of A and C, N of B).
    """

    ROW_MAJOR = "row-major"
    COL_MAJOR = "column-major"

    @staticmethod
    def from_tensor(tensor: Any) -> LayoutEnum:
        """Return the major mode of a tensor from its mode of stride 1.

        Raises DSLTypeError unless mode 0 or mode 1 is known to have stride 1.
        """
        if not hasattr(tensor, "leading_dim"):
            raise DSLTypeError(f"LayoutEnum.from_tensor takes a tensor, not {tensor!r}")
        leading = tensor.leading_dim
        if leading not in (0, 1):
            raise DSLTypeError(
                "neither of the first two modes of a tensor is known to be contiguous",
                notes=((f"the tensor is {tensor}", None),),
                hint="pass an array with one stride of 1, or say which mode it is: "
                "from_dlpack(x).mark_layout_dynamic(leading_dim=)",
            )
        return LayoutEnum.ROW_MAJOR if leading == 1 else LayoutEnum.COL_MAJOR

    def sm90_mma_major_mode(self) -> OperandMajorMode:
        """Return the major mode as that of operand A (M, K) or B (N, K) of wgmma."""
        return OperandMajorMode.K if self is LayoutEnum.ROW_MAJOR else OperandMajorMode.MN

    mma_major_mode = sm90_mma_major_mode

    def is_k_major_a(self) -> bool:
        """Return True if K is contiguous in A (M, K)."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        """Return True if M is contiguous in A (M, K)."""
        return self is LayoutEnum.COL_MAJOR

    def is_k_major_b(self) -> bool:
        """Return True if K is contiguous in B (N, K)."""
        return self is LayoutEnum.ROW_MAJOR

    def is_n_major_b(self) -> bool:
        """Return True if N is contiguous in B (N, K)."""
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        """Return True if N is contiguous in C (M, N)."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        """Return True if M is contiguous in C (M, N)."""
        return self is LayoutEnum.COL_MAJOR
