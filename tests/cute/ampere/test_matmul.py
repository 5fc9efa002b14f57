"""`ops.matmul` against NumPy: shapes, views, types, what is fused; what it refuses; its caches."""

import math
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.nvgpu import warp
from basedsl_cute.ops import matmul
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import sgemm
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.gemm import matmul as multiply
from basedsl_cute.ops.gemm.kernel_selection import matrix_views, operand_info, with_copies_for_tma
from basedsl_cute.ops.gemm.matrix_views import spaced, view_of
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.plan_cache import PlanCache

sys.path.insert(0, str(Path(__file__).parent))

from gemm_problems import close

RNG = np.random.default_rng(11)
SMALL = ampere_gemm.Config(tile=(32, 32, 32), warps=(2, 1))  # compiles fast


def normal(*shape, dtype=np.float16):
    return RNG.standard_normal(shape).astype(dtype)


def wide(x):
    return x.astype(np.float64)


def check(a, b, **options):
    result = matmul(a, b, config=SMALL, **options)
    cute.synchronize()
    exact = wide(a) @ wide(b)
    assert result.shape == exact.shape
    close(np.asarray(result), exact)


SHAPES = {
    "matrices": ((40, 24), (24, 56)),
    "batches": ((3, 40, 24), (3, 24, 56)),
    "rows of several modes and one matrix": ((2, 5, 8, 24), (24, 56)),
    "one matrix and batches": ((40, 24), (3, 24, 56)),
    "modes of one": ((1, 3, 8, 24), (2, 1, 24, 16)),
    "a row": ((24,), (24, 56)),
    "a column": ((40, 24), (24,)),
    "a row and a column": ((24,), (24,)),
    "one row": ((1, 24), (24, 56)),
    "one column": ((40, 24), (24, 1)),
    "one of K": ((40, 1), (1, 56)),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes(target, case):
    check(*(normal(*shape) for shape in SHAPES[case]))


VIEWS = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "columns of a larger one": lambda x: np.pad(x, ((0, 0), (1, 3)))[:, 1:-3],
}


@pytest.mark.parametrize("case", VIEWS)
def test_views(target, case):
    view = VIEWS[case]
    check(view(normal(40, 24)), view(normal(24, 56)))


def test_out(target):
    a, b = normal(40, 24), normal(24, 56)
    out = np.zeros((56, 40), np.float32).T
    assert matmul(a, b, out=out, config=SMALL) is out
    cute.synchronize()
    close(out, wide(a) @ wide(b))
    for wrong, text in (
        (np.zeros((40, 55), np.float16), r"the result is Float16 of \(40, 56\)"),
        (np.zeros((80, 112), np.float16)[::2, ::2], "leave out= away"),
        (np.zeros((40, 56), np.float16), None),
    ):
        if text is not None:
            with pytest.raises(DSLTypeError, match=text):
                matmul(a, b, out=wrong)
    square = normal(24, 24)
    with pytest.raises(DSLTypeError, match="out shares memory with a"):
        matmul(square, square, out=square, config=SMALL)


def reference(x, activation):
    if activation == "gelu":
        return x * (np.vectorize(math.erf)(x / math.sqrt(2)) + 1) / 2
    if activation == "gelu_tanh":
        return x * (np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)) + 1) / 2
    known = {
        "relu": np.maximum(x, 0),
        "sigmoid": 1 / (1 + np.exp(-x)),
        "silu": x / (1 + np.exp(-x)),
        "tanh": np.tanh(x),
    }
    return known[activation]


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "sigmoid", "silu", "tanh"])
def test_activations(target, activation):
    a, b = normal(24, 16), normal(16, 32)
    c = matmul(a, b, activation=activation, out_dtype=np.float32, config=SMALL)
    cute.synchronize()
    close(c, reference(wide(a) @ wide(b), activation))


def test_everything_at_once(target):
    a, b = normal(2, 20, 24), normal(24, 56)
    bias, residual = normal(56, dtype=np.float32), normal(2, 20, 56)
    c = matmul(
        a, b, alpha=0.5, bias=bias, activation="relu", residual=residual,
        out_dtype=np.float32, config=SMALL,
    )  # fmt: skip
    cute.synchronize()
    close(c, np.maximum(0.5 * (wide(a) @ wide(b)) + bias, 0) + wide(residual))


def test_operands_that_broadcast(target):
    a, b = normal(3, 20, 24), normal(3, 24, 40)
    per_batch = normal(3, 1, 1, dtype=np.float32)
    c = matmul(a, b, residual=per_batch, bias=normal(1, 20, 1) * 0, config=SMALL)
    cute.synchronize()
    close(c, wide(a) @ wide(b) + per_batch)


def test_an_epilogue_of_ones_own(target):
    a, b = normal(20, 24), normal(24, 40)
    x = normal(20, 40)

    def times(sums, factor, x):
        return sums * factor + x.to(cute.Float32)

    c = matmul(a, b, epilogue=times, operands=(3.0, x), config=SMALL)
    cute.synchronize()
    close(c, 3 * (wide(a) @ wide(b)) + wide(x))


FACTOR = 2.0


def test_what_an_epilogue_reads_may_change(sim, monkeypatch):
    a, b = normal(20, 24), normal(24, 40)

    def scaled(sums):
        return sums * FACTOR

    close(matmul(a, b, epilogue=scaled, config=SMALL), 2 * (wide(a) @ wide(b)))
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    close(matmul(a, b, epilogue=scaled, config=SMALL), 3 * (wide(a) @ wide(b)))


def test_alpha_is_a_number_or_an_array_of_one(sim):
    a, b = normal(20, 24), normal(24, 40)
    for alpha in (2, np.float32(2), np.array([2], np.float16)):
        close(matmul(a, b, alpha=alpha, config=SMALL), 2 * (wide(a) @ wide(b)))


def test_types(target):
    a, b = RNG.integers(-100, 100, (2, 20, 20)).astype(np.int8)
    c = matmul(a, b)
    cute.synchronize()
    assert c.dtype == np.int32
    np.testing.assert_array_equal(c, a.astype(int) @ b.astype(int))
    for dtype, out in ((ml_dtypes.bfloat16, None), (np.float32, None), (np.float32, np.float16)):
        a, b = normal(20, 24, dtype=dtype), normal(24, 40, dtype=dtype)
        c = matmul(a, b, out_dtype=out)
        cute.synchronize()
        assert c.dtype == (out or dtype)
        close(c, wide(a) @ wide(b))


@pytest.mark.parametrize("transposed", [False, True])
def test_the_hopper_kernel(sim, transposed):
    a, b = normal(72, 40), normal(56, 40).T if transposed else normal(40, 56)
    cfg = hopper_gemm.Config(tile=(64, 64, 64), consumers=1, stages=2)
    c = matmul(a, b, bias=np.ones(56, np.float16), config=cfg)
    close(c, wide(a) @ wide(b) + 1)


def test_nothing_to_compute(sim):
    assert matmul(normal(0, 8), normal(8, 4)).shape == (0, 4)
    assert matmul(normal(3, 2, 8), normal(3, 8, 0)).shape == (3, 2, 0)


@pytest.mark.parametrize("shape", [(2, 3, 0), (0,)])
def test_without_columns_products_are_zeros(sim, shape):
    bias, out = normal(5), np.full((*shape[:-1], 5), np.nan, np.float16)
    assert matmul(normal(*shape), normal(0, 5), bias=bias, out=out, config=SMALL) is out
    np.testing.assert_array_equal(out, np.zeros_like(out) + bias)


@pytest.mark.filterwarnings("ignore::basedsl_cute.dsl.steps.SpillWarning")
@pytest.mark.parametrize("rows", [8, 16])
def test_float64(target, rows, monkeypatch):
    if rows == 8:
        op = warp.MmaF64Op((8, 8, 4))
        monkeypatch.setattr(ampere_gemm, "instruction", lambda *_: op)
        monkeypatch.setattr(multiply, "_plans", PlanCache())
        monkeypatch.setattr(multiply, "_kernels", {})
    a, b = normal(70, 17, dtype=np.float64), normal(17, 45, dtype=np.float64)
    bias = normal(45, dtype=np.float64)
    config = ampere_gemm.Config((64, 64, 16), (2, 1))
    c = matmul(a, b, alpha=0.1, bias=bias, activation="relu", config=config)
    cute.synchronize()
    np.testing.assert_allclose(c, np.maximum(0.1 * (a @ b) + bias, 0), atol=1e-13)


REFUSED = {
    r"a of \(3, 4\) times b of \(3, 4\): 4 columns and 3 rows": lambda: matmul(
        normal(3, 4), normal(3, 4)
    ),
    "leading modes of .* do not broadcast": lambda: matmul(normal(2, 3, 4), normal(3, 4, 3)),
    "does not multiply Float16 and Float32": lambda: matmul(
        normal(3, 4), normal(4, 3, dtype=np.float32)
    ),
    "does not multiply Int32 and Int32": lambda: matmul(*(np.ones((4, 4), np.int32),) * 2),
    "Float64 is multiplied by ops.ampere.gemm": lambda: matmul(
        np.ones((3, 4)), np.ones((4, 3)), config=hopper_gemm.Config()
    ),
    "takes vectors and matrices": lambda: matmul(np.float16(3) * np.ones(()), normal(4)),
    "takes arrays of PyTorch, CuPy, JAX or NumPy, not a list": lambda: matmul([1], [2]),
    "b is a builtins.list, unlike a|not a list": lambda: matmul(normal(3, 4), [1]),
    "activation='rely' is unknown": lambda: matmul(normal(3, 4), normal(4, 3), activation="rely"),
    "an epilogue replaces bias": lambda: matmul(
        normal(3, 4), normal(4, 3), bias=normal(3), epilogue=lambda x: x
    ),
    "operands= are those of an epilogue": lambda: matmul(
        normal(3, 4), normal(4, 3), operands=(1.0,)
    ),
    r"an operand of \(4,\) does not broadcast": lambda: matmul(
        normal(3, 4), normal(4, 3), bias=normal(4)
    ),
    "sgemm multiplies Float32": lambda: matmul(normal(3, 4), normal(4, 3), config=sgemm.Config()),
    "no Config of a kernel": lambda: matmul(normal(3, 4), normal(4, 3), config=3),
    "out_dtype and config are static: unhashable": lambda: matmul(
        normal(3, 4), normal(4, 3), activation=["relu"]
    ),
    "out_dtype='flaot' is no element type": lambda: matmul(
        normal(3, 4), normal(4, 3), out_dtype="flaot"
    ),
    "operands= is an ndarray": lambda: matmul(
        normal(3, 4), normal(4, 3), epilogue=lambda x, y: x + y, operands=normal(3)
    ),
    r"an operand of \(7,\) does not broadcast": lambda: matmul(
        normal(0, 4), normal(4, 3), bias=normal(7)
    ),
    "a masked array": lambda: matmul(np.ma.masked_array(normal(3, 4), mask=True), normal(4, 3)),
    "elements of type complex64 have no": lambda: matmul(*(np.ones((4, 4), np.complex64),) * 2),
    "starts 1 bytes after a multiple of its 2-byte": lambda: matmul(
        np.zeros(33, np.uint8)[1:].view(np.float16).reshape(4, 4), normal(4, 4)
    ),
    "elements that share memory": lambda: matmul(
        normal(3, 4),
        normal(4, 8),
        out=np.lib.stride_tricks.as_strided(normal(8), (3, 8), (0, 2)),
    ),
}


def test_what_is_read_only_is_read_and_not_written(sim):
    a, b, out = normal(40, 24), normal(24, 56), np.zeros((40, 56), np.float16)
    for writeable in (False, True, False):
        a.setflags(write=writeable)
        check(a, b)
    out.setflags(write=False)
    with pytest.raises(DSLTypeError, match="out is read-only"):
        check(a, b, out=out)
    out.setflags(write=True)
    check(a, b, out=out)
    out.setflags(write=False)
    with pytest.raises(DSLTypeError, match="out is read-only"):
        check(a, b, out=out)


@pytest.mark.slow
def test_vectors_of_one_number_and_what_is_added_to_their_products(sim):
    three = np.broadcast_to(np.float32(3), (15,))
    b = normal(15, 3, dtype=np.float32)
    close(matmul(three, b[:, :1]), wide(three) @ wide(b[:, :1]))
    row, batches = normal(24), normal(2, 24, 8)
    for residual in (normal(2, 8), normal(1, 8), normal(8), normal(2, 1)):
        close(matmul(row, batches, residual=residual), wide(row) @ wide(batches) + wide(residual))
    column, batches = normal(24), normal(2, 8, 24)
    for residual in (normal(2, 8), normal(8), normal(2, 1)):
        close(
            matmul(batches, column, residual=residual),
            wide(batches) @ wide(column) + wide(residual),
        )


def test_batches_beside_each_other(sim):
    """The batches are the contiguous mode: operands are copied, a result cannot be."""
    a, b = normal(40, 24, 2).transpose(2, 0, 1), normal(24, 56, 2).transpose(2, 0, 1)
    out = np.zeros((40, 56, 2), np.float16).transpose(2, 0, 1)
    check(a, b)
    check(a[:, :, :1], b[:, :1])
    check(np.broadcast_to(a[:, :1, :1], (2, 33, 1)), b[:, :1])
    with pytest.raises(DSLTypeError, match="needs batches of one stride"):
        matmul(a, b, out=out, config=SMALL)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((30, 1, 40), (30, 40, 1)),
        ((5, 1, 1), (5, 1, 4)),
        ((5, 4, 1), (5, 1, 1)),
        ((2, 5, 1, 7), (2, 5, 7, 1)),
        ((7,), (5, 7, 1)),
        ((1, 5, 1, 9), (2, 1, 9, 1)),
    ],
)
def test_batches_of_one_row_or_one_column(target, first, second):
    """Batches and the contiguous mode have stride 1 both."""
    check(normal(*first), normal(*second))


def test_batches_of_numbers_in_float32(target):
    a, b = normal(5, 1, 1, dtype=np.float32), normal(5, 1, 1, dtype=np.float32)
    result = matmul(a, b)
    cute.synchronize()
    close(result, wide(a) @ wide(b))


def test_out_apart_from_the_operands(sim):
    memory = normal(96, 64)
    with pytest.raises(DSLTypeError, match="out shares memory with a"):
        matmul(memory[:40], normal(64, 64), out=memory[20:60], config=SMALL)
    # Columns of one array beside each other share none, whatever lies between them.
    a, b, out = memory[:40, :24], normal(24, 32), memory[:40, 32:]
    exact = wide(a) @ wide(b)
    matmul(a, b, out=out, config=SMALL)
    close(out, exact)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(sim, text):
    with pytest.raises(DSLTypeError, match=text):
        REFUSED[text]()


def test_one_kernel_serves_all_extents(sim, monkeypatch):
    monkeypatch.setattr(multiply, "_kernels", {})
    for m, n, k in ((40, 56, 24), (48, 8, 16), (72, 64, 40)):
        check(normal(m, k), normal(k, n))
    assert len(multiply._kernels) == 1
    a, b = normal(40, 23), normal(23, 56)
    check(a, b)  # 16 bytes do not divide its rows
    assert len(multiply._kernels) == 2
    before = len(multiply._plans)
    for kept, other in ((a, normal(40, 23)), (b, normal(23, 56))):
        kept[...] = other  # a new array may be aligned otherwise, which is another plan
    check(a, b)
    assert (len(multiply._kernels), len(multiply._plans)) == (2, before)


def test_tiles_are_chosen_by_shape():
    def tile(m, n, k=4096):
        return ampere_gemm.choose_config(m, n, k, 16, 108, 163 * 1024).tile[:2]

    assert tile(8192, 8192) in ((128, 256), (256, 128))
    assert tile(64, 4096)[0] == 64
    assert (
        ampere_gemm.choose_config(4096, 4096, 4096, 16, 108, 99 * 1024).smem_bytes(16) <= 99 * 1024
    )
    assert sgemm.choose_config(8192, 8192, 132).tile[:2] == (128, 256)
    assert sgemm.choose_config(512, 512, 132).tile[:2] == (64, 64)


def test_full_tiles_are_those_of_a_batch(sim):
    """8 batches of 40 rows are 10 tiles of 32 rows, and none of them is full."""
    a, b = normal(8, 40, 64), normal(8, 64, 64)
    close(matmul(a, b, config=SMALL), wide(a) @ wide(b))
    a, b, out = normal(64, 64), normal(64, 40), np.zeros((40, 64), np.float16).T
    full = ampere_gemm.Config(tile=(64, 32, 32), warps=(2, 1), is_full=True)  # not so of C^T
    matmul(a, b, out=out, config=full)
    close(out, wide(a) @ wide(b))


def test_views_of_extents_and_strides():
    rows = view_of((4, 5, 8), (40, 8, 1), (4, 5, 8), 2, batched=False, may_copy=False)
    assert (rows.shape, rows.strides, rows.lead, rows.is_same) == ((20, 8), (8, 1), -1, False)
    assert rows.vector(16, 2) == 8
    assert rows.vector(4, 2) == 2
    repeated = view_of((8, 8), (8, 1), (3, 8, 8), 2, batched=True, may_copy=False)
    assert repeated.strides == (0, 8, 1)
    assert not repeated.suits_tma(0, 2)
    padded = view_of((8, 60), (64, 1), (8, 60), 2, batched=False, may_copy=False)
    assert padded.suits_tma(0, 2) and not padded.suits_tma_store(2) and padded.suits_tma_store(4)
    turned = view_of((6, 8), (1, 6), (6, 8), 2, batched=False, may_copy=False)
    assert (turned.lead, turned.is_same, turned.vector(0, 2)) == (-2, True, 2)
    assert view_of((6, 8), (32, 2), (6, 8), 2, batched=False, may_copy=False) is None
    assert view_of((6, 8), (32, 2), (6, 8), 2, batched=False, may_copy=True).copied


def test_copies_that_tma_can_load():
    x = normal(3, 6, 9)
    for turned, strides in ((x, (96, 16, 1)), (x.transpose(0, 2, 1), (96, 1, 16))):
        walked = tuple(d // 2 for d in turned.strides)
        view = view_of(turned.shape, walked, turned.shape, 2, batched=True, may_copy=False)
        assert not view.suits_tma(0, 2)
        copy = spaced(view, 2)
        assert (copy.shape, copy.strides, copy.lead) == (turned.shape, strides, view.lead)
        assert copy.suits_tma(2, 2)  # wherever the array itself begins
        np.testing.assert_array_equal(copy.of(turned, library(x)), turned)
    repeated = view_of((6, 9), (9, 1), (3, 6, 9), 2, batched=True, may_copy=False)
    assert spaced(repeated, 2) is None


@pytest.mark.parametrize(
    "shape, dtype, copied",
    [
        ((1024, 768, 50257), np.float16, (False, True)),
        ((1024, 767, 50257), np.float16, (True, True)),
        ((1024, 768, 50256), np.float16, (False, False)),
        ((16, 768, 50257), np.float16, (False, False)),  # a copy takes longer than it saves
        ((2048, 2056, 2056), np.int8, (True, True)),
    ],
)
def test_what_is_copied_for_tma(monkeypatch, shape, dtype, copied):
    m, k, n = shape
    a, b, c = (operand_info(np.empty(s, dtype), "x") for s in ((m, k), (k, n), (m, n)))
    matrices, _, _ = matrix_views(a, b, c, [], (), (m, n, k))
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    made = with_copies_for_tma(matrices, a, b, k)
    assert tuple(v.copied is not None for v in made[:2]) == copied
    assert made[2] is matrices[2]
    for view, x in zip(made, (a, b), strict=False):
        assert any(copied) <= view.suits_tma(x.host.address, x.size)
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")
    assert with_copies_for_tma(matrices, a, b, k) is matrices
