"""`utils.epilogue`: operands are read inside of C only, a function makes of them what it says."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.utils.epilogue import apply_epilogue, load_operand, per_column, per_row


@cute.kernel
def row_kernel(
    a: cute.Tensor, c: cute.Tensor, op: cute.Constexpr, operands: tuple, asks: cute.Constexpr
):
    """Each thread has 8 columns of a row, of which c may have fewer."""
    at = (cute.arch.thread_idx()[0], 0)
    coords = cute.local_tile(cute.make_identity_tensor(c.shape), (1, 8), at)[0, None]
    inside = cute.elem_less((at[0], 7), c.shape) if asks else None
    parts = [cute.local_tile(x, (1, 8), at)[0, None] for x in (a, *operands)]
    acc, *loaded = [load_operand(part, coords, c.shape, inside) for part in parts]
    result = apply_epilogue(op, acc, loaded, c.element_type)
    for i in cute.range_constexpr(8):
        if cute.elem_less(coords[i], c.shape):
            c[coords[i]] = result[i]


@cute.jit
def row_epilogue(
    a: cute.Tensor,
    c: cute.Tensor,
    bias: cute.Tensor,
    scale: cute.Tensor,
    op: cute.Constexpr,
    asks: cute.Constexpr,
):
    operands = ()
    if cute.const_expr(op is not None):
        operands = (per_column(bias, c.shape), per_row(scale, c.shape))
    row_kernel(a, c, op, operands, asks).launch(grid=(1, 1, 1), block=(32, 1, 1))


def run(op, shape=(7, 5), asks=False, dtype=np.float16):
    rng = np.random.default_rng(5)
    a = rng.standard_normal(shape).astype(np.float32)
    bias, scale = (rng.standard_normal(n).astype(np.float32) for n in (shape[1], shape[0]))
    c = np.full(shape, 77, dtype)
    row_epilogue(a, c, bias, scale, op, asks)
    return c, a, bias, scale[:, None]


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, acc, bias, scale):
        return acc * scale * self.factor + bias


def relu(acc, bias, scale):
    x = acc * scale + bias
    return cute.where(x > 0.0, x, 0.0)


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (3, 8), (32, 1)])
def test_a_function_with_operands(sim, shape, asks):
    c, a, bias, scale = run(relu, shape, asks)
    np.testing.assert_allclose(c, np.maximum(a * scale + bias, 0), rtol=1e-3, atol=1e-3)


def test_an_object(sim):
    c, a, bias, scale = run(Scaled(3.0), dtype=np.float32)
    np.testing.assert_allclose(c, a * scale * 3 + bias, rtol=1e-6, atol=1e-6)


def test_none_converts(sim):
    c, a, *_ = run(None)
    np.testing.assert_array_equal(c, a.astype(np.float16))


@pytest.mark.parametrize(
    "op, text",
    [
        (3, "an epilogue is a function of the accumulators, not an int"),
        (lambda acc, *_: 1.0, r"the epilogue '<lambda>' returns float, not a TensorSSA"),
        (lambda acc, *_: acc.reshape((2, 4))[0, None], "of an accumulator of"),
    ],
)
def test_what_is_no_epilogue(sim, op, text):
    with pytest.raises(DSLTypeError, match=text):
        run(op)
