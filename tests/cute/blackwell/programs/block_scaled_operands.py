"""Operands of block-scaled products as bytes, factors in chunks, and the products that they have.

Values are small whole numbers and factors powers of two, or whole where their type has a fraction,
so that sums are exact in Float32.
"""

import cutlass
import ml_dtypes
import numpy as np
from blackwell_operands import matrix
from cutlass.cute.runtime import from_dlpack

NUMPY = {
    cutlass.Float4E2M1FN: ml_dtypes.float4_e2m1fn,
    cutlass.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    cutlass.Float8E5M2: ml_dtypes.float8_e5m2,
    cutlass.Float8E8M0FNU: ml_dtypes.float8_e8m0fnu,
    cutlass.BFloat16: ml_dtypes.bfloat16,
    cutlass.Float16: np.float16,
    cutlass.Float32: np.float32,
}
CHUNK_ROWS, CHUNK_FACTORS = 128, 4


def operand(rng, batches, rows, k, dtype, is_rows_major):
    """Values (rows, k, batches), and a tensor of their bytes; two values a byte along K for FP4."""
    values = matrix(rng, batches, rows, k, is_rows_major)
    codes = values.astype(NUMPY[dtype], order="K").view(np.uint8)
    if dtype.width == 4:
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    return values, tensor_of(codes, is_rows_major)


def factors(rng, batches, rows, k, dtype, vector):
    """Factors (rows, k, batches), one for each value, and a tensor of their chunks' bytes."""
    choices = [0.5, 1, 2] if dtype is cutlass.Float8E8M0FNU else [0.5, 1, 3]
    columns = -(-k // vector)
    made = rng.choice(choices, (batches, rows, columns)).astype(NUMPY[dtype])
    full = [-(-x // y) * y for x, y in ((rows, CHUNK_ROWS), (columns, CHUNK_FACTORS))]
    codes = np.zeros((batches, *full), np.uint8)
    codes[:, :rows, :columns] = made.view(np.uint8)
    # A chunk has rows 0, 32, 64 and 96 side by side, then 1, 33, ...; chunks go along K first.
    chunks = codes.reshape(batches, -1, 4, 32, full[1] // CHUNK_FACTORS, CHUNK_FACTORS)
    chunks = np.ascontiguousarray(chunks.transpose(0, 1, 4, 3, 2, 5)).ravel()
    of_values = np.repeat(made.astype(np.float32), vector, 2)[:, :, :k].transpose(1, 2, 0)
    return of_values, from_dlpack(chunks, assumed_align=16)


def output(batches, rows, columns, dtype, is_rows_major):
    """An array (rows, columns, batches) full of NaN, and a tensor of its bits."""
    shape = (batches, columns, rows) if is_rows_major else (batches, rows, columns)
    bits = np.full(shape, (1 << dtype.width) - 1, f"uint{dtype.width}")
    bits = bits.transpose((2, 1, 0) if is_rows_major else (1, 2, 0))
    return bits.view(NUMPY[dtype]), tensor_of(bits, is_rows_major)


def tensor_of(x, is_rows_major):
    tensor = from_dlpack(x, assumed_align=16)
    tensor.mark_layout_dynamic(leading_dim=0 if is_rows_major else 1)
    return tensor


def product(a, b, c_dtype):
    """A B^T of (rows, K, batches), rounded to `c_dtype`; 8 bits saturate as they do in kernels."""
    wanted = np.einsum("mkl,nkl->mnl", a, b)
    if c_dtype.width == 8:
        top = float(ml_dtypes.finfo(NUMPY[c_dtype]).max)
        wanted = np.clip(wanted, -top, top)
    return wanted.astype(NUMPY[c_dtype])
