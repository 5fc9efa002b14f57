"""Arrays for the programs beside it: small whole numbers, in either major mode, in batches."""

import cutlass
import ml_dtypes
import numpy as np
from cutlass.cute.runtime import from_dlpack

NUMPY = {
    cutlass.Float16: np.float16,
    cutlass.BFloat16: ml_dtypes.bfloat16,
    cutlass.Float32: np.float32,
    cutlass.Int8: np.int8,
    cutlass.Int32: np.int32,
}


def matrix(rng, batches, rows, columns, is_rows_major):
    """Small whole numbers (rows, columns, batches), of which the named mode is contiguous."""
    shape = (batches, columns, rows) if is_rows_major else (batches, rows, columns)
    made = rng.integers(-2, 3, shape).astype(np.float32)
    return made.transpose((2, 1, 0) if is_rows_major else (1, 2, 0))


def tensor_like(x, dtype, is_rows_major):
    """A copy of `x` as `dtype`, with its strides, and the array that owns its memory."""
    made = x.astype(NUMPY[dtype], order="K")
    made = from_dlpack(made, assumed_align=16), made
    made[0].mark_layout_dynamic(leading_dim=0 if is_rows_major else 1)
    return made
