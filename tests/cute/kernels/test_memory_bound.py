"""The memory-bound examples against NumPy: shapes, orders, types, static and dynamic layouts."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "cute"))

import elementwise
import gather_scatter
import normalization
import row_reduction
import softmax
import transpose

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}

pytestmark = pytest.mark.usefixtures("target")


def random(shape, dtype="f32", order="C", seed=0):
    x = np.random.default_rng(seed).standard_normal(shape)
    return np.asarray(x, dtype=DTYPES[dtype], order=order)


def poisoned(shape, dtype="f32", order="C"):
    return np.full(shape, np.nan, DTYPES[dtype], order=order)


def static(*arrays):
    return [from_dlpack(x, assumed_align=16) for x in arrays]


def assert_close(got, expected, dtype):
    got = got.astype(np.float64)
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


# Elementwise -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(16, 128), (17, 129), (1, 1), (50, 260), (100, 7)])
@pytest.mark.parametrize("layout", ["static", "dynamic", "columns"])
def test_elementwise_add(shape, layout):
    order = "F" if layout == "columns" else "C"
    a, b = random(shape, order=order, seed=1), random(shape, order=order, seed=2)
    c = poisoned(shape, order=order)
    args = (a, b, c) if layout == "dynamic" else static(a, b, c)
    elementwise.elementwise_add(*args)
    np.testing.assert_array_equal(c, a + b)


def test_elementwise_add_in_mixed_orders():
    a, b = random((33, 70), order="F", seed=1), random((70, 33), seed=2).T
    c = poisoned((33, 70))
    elementwise.elementwise_add(a, b, c)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (0, 0)])
@pytest.mark.parametrize("layout", ["static", "dynamic"])
def test_elementwise_of_nothing_does_nothing(shape, layout):
    arrays = [random(shape), random(shape), poisoned(shape)]
    elementwise.elementwise_add(*(arrays if layout == "dynamic" else static(*arrays)))


@pytest.mark.parametrize("shape", [(), (8,), (2, 3, 4)])
def test_elementwise_of_other_ranks_is_refused(shape):
    x = random(shape)
    with pytest.raises(Exception, match="takes tensors of two modes"):
        elementwise.elementwise_add(x, x, x)


def test_elementwise_of_arrays_that_run_backwards_and_in_steps():
    a, b = random((16, 40), seed=1), random((8, 20), seed=2)
    for view in (a[::-2, ::-2], a[::2, :20], a[:8, ::-2], np.broadcast_to(a[:1, :20], (8, 20))):
        c = poisoned((8, 20))
        elementwise.elementwise_add(view, b[::-1], c[:, ::-1])
        np.testing.assert_array_equal(c[:, ::-1], view + b[::-1])


def test_elementwise_of_marked_layouts():
    a, b = random((40, 256), seed=1), random((40, 256), seed=2)
    c = poisoned((40, 256))
    marked = [t.mark_compact_shape_dynamic(1, divisibility=4) for t in static(a, b, c)]
    compiled = cute.compile(elementwise.elementwise_add, *marked)
    compiled(*marked)
    np.testing.assert_array_equal(c, a + b)
    text = cute.compile(elementwise.elementwise_add, *marked, options="--arch sm_90a").stages.text(
        "ptx"
    )
    assert text.count("ld.global.v4.b32") >= 8  # vectors away from the edge


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_apply_of_any_function_and_arity(dtype):
    x, y, z = (random((20, 300), dtype, seed=i) for i in range(3))
    wide = [v.astype(np.float64) for v in (x, y, z)]
    out = poisoned((20, 300), dtype)
    elementwise.elementwise_apply(lambda v: v * 2.0 + 1.0, (x,), out)
    assert_close(out, wide[0] * 2 + 1, dtype)
    elementwise.elementwise_apply(
        lambda a, b, c: cute.where(a > b, a.to(cute.Float32) * c.to(cute.Float32), 0.5),
        tuple(static(x, y, z)), static(out)[0],
    )  # fmt: skip
    assert_close(out, np.where(wide[0] > wide[1], wide[0] * wide[2], 0.5), dtype)


@pytest.mark.parametrize("threads", [(1, 64), (4, 32), (8, 16)])
def test_elementwise_of_other_tiles(threads):
    a, b, c = random((16, 512), seed=1), random((16, 512), seed=2), poisoned((16, 512))
    x, y, z = static(a, b, c)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        elementwise.elementwise_apply(lambda a, b: a - b, (x, y), z, threads, 2)

    host(x, y, z)
    np.testing.assert_array_equal(c, a - b)


def test_static_elementwise_has_no_division_in_ptx():
    x = np.zeros((4096, 3000), np.float32)
    compiled = cute.compile(elementwise.elementwise_add, *static(x, x, x), options="--arch sm_90a")
    text = compiled.stages.text("ptx")
    assert "div." not in text and "rem." not in text and ".local" not in text
    # Once for blocks inside, and once for blocks at a border whose threads are inside.
    assert text.count("ld.global.v4.b32") == 16 and text.count("st.global.v4.b32") == 8


@pytest.mark.parametrize("order", "CF")
def test_elementwise_of_raw_arrays_moves_16_bytes_at_once(order):
    compiled = {}
    for rows, columns in ((64, 256), (63, 255)):
        x = np.zeros((rows, columns), np.float32, order=order)
        ptx = cute.compile(elementwise.elementwise_add, x, x, x, options="--arch sm_90a")
        compiled[rows] = ptx.stages.text("ptx")
    assert compiled[64].count("ld.global.v4.b32") == 16
    assert compiled[64].count("st.global.v4.b32") == 8
    assert "v4" not in compiled[63]


# Rows --------------------------------------------------------------------------------------------


ROWS = [(8, 512), (5, 100), (3, 1000), (70, 8), (2, 4104), (9, 33)]


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax(shape, dtype):
    x, y = random(shape, dtype), poisoned(shape, dtype)
    softmax.softmax(*static(x, y))
    assert_close(y, softmax_of(x), dtype)


def softmax_of(x):
    wide = x.astype(np.float64)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def test_softmax_of_large_and_masked_numbers():
    x = random((4, 256))
    x[0] += 1e4
    x[1, 7:] = -np.inf
    y = poisoned((4, 256))
    softmax.softmax(*static(x, y))
    assert_close(y, softmax_of(x), "f32")


@pytest.mark.parametrize("shape", [(64, 40), (33, 300), (1, 5)])
def test_rows_of_column_major_matrices(shape):
    x, y, sums = random(shape, order="F"), poisoned(shape, order="F"), poisoned(shape[:1])
    softmax.softmax(*static(x, y))
    assert_close(y, softmax_of(x), "f32")
    row_reduction.row_sum(*static(x, sums))
    assert_close(sums, x.sum(axis=1, dtype=np.float64), "f32")


def test_rows_of_dynamic_layouts():
    x, y, sums = random((13, 200)), poisoned((13, 200)), poisoned((13,))
    softmax.softmax(x, y, columns=256)
    assert_close(y, softmax_of(x), "f32")
    row_reduction.row_sum(x, sums, columns=200)
    assert_close(sums, x.sum(axis=1, dtype=np.float64), "f32")
    with pytest.raises(Exception, match="pass columns="):
        softmax.softmax(x, y)


def test_a_dynamic_number_of_rows_keeps_vectors():
    x, y = random((13, 256), "f16"), poisoned((13, 256), "f16")
    marked = [t.mark_compact_shape_dynamic(0) for t in static(x, y)]
    compiled = cute.compile(softmax.softmax, *marked)
    compiled(*marked)
    assert_close(y, softmax_of(x), "f16")
    compiled = cute.compile(softmax.softmax, *marked, options="--arch sm_90a")
    text = compiled.stages.text("ptx")
    assert "ld.global.v4.b32" in text and "ld.global.b16" not in text


@pytest.mark.parametrize("threads", [8, 32, 128, 512])
def test_softmax_on_any_number_of_threads(threads):
    x, y = random((6, 640)), poisoned((6, 640))
    softmax.softmax(*static(x, y), threads=threads)
    assert_close(y, softmax_of(x), "f32")


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms(shape, dtype):
    x, y = random(shape, dtype), poisoned(shape, dtype)
    weight, bias = random(shape[1:], dtype, seed=1), random(shape[1:], dtype, seed=2)
    wide, w, b = (v.astype(np.float64) for v in (x, weight, bias))
    normalization.rms_norm(*static(x, weight, y), 1e-5)
    assert_close(y, wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * w, dtype)
    y[:] = np.nan
    normalization.layer_norm(*static(x, weight, bias, y), 1e-5)
    centred = wide - wide.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    assert_close(y, centred / np.sqrt(variance + 1e-5) * w + b, dtype)


def test_norm_weights_of_another_type():
    x, y = random((4, 512), "f16"), poisoned((4, 512), "f16")
    weight = random((512,), seed=1)
    wide = x.astype(np.float64)
    args = static(x, weight, y)
    normalization.rms_norm(*args, 1e-5)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * weight
    assert_close(y, expected, "f16")
    compiled = cute.compile(normalization.rms_norm, *args, 1e-5, options="--arch sm_90a")
    assert "ld.global.b" not in compiled.stages.text("ptx")


def test_layer_norm_of_a_shifted_row_is_exact_enough():
    x, y = random((4, 1024)) + np.float32(1000), poisoned((4, 1024))
    one, zero = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    normalization.layer_norm(*static(x, one, zero, y), 1e-5)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(y, expected, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_row_sums(dtype):
    x, sums = random((30, 520), dtype), poisoned((30,))
    row_reduction.row_sum(*static(x, sums))
    np.testing.assert_allclose(sums, x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-3)


# Transpose ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(64, 128), (128, 64), (70, 100), (1, 300), (65, 63)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_transpose(shape, dtype):
    x = np.arange(shape[0] * shape[1]).reshape(shape).astype(dtype)
    y = np.zeros(shape[::-1], dtype)
    transpose.transpose(*static(x, y))
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("tile", [32, 64, 128])
def test_transpose_of_other_tiles(tile):
    x, y = random((256, 128), "f16"), poisoned((128, 256), "f16")
    transpose.transpose(*static(x, y), tile)
    np.testing.assert_array_equal(y, x.T)


def test_transpose_of_dynamic_layouts():
    x, y = random((50, 70)), poisoned((70, 50))
    transpose.transpose(x, y)
    np.testing.assert_array_equal(y, x.T)
    column_major = random((50, 70), order="F")
    y[:] = np.nan
    transpose.transpose(column_major, y)
    np.testing.assert_array_equal(y, column_major.T)


def test_transpose_accesses_16_bytes():
    x = np.zeros((1024, 1024), np.float32)
    compiled = cute.compile(transpose.transpose, *static(x, x), 64, options="--arch sm_90a")
    text = compiled.stages.text("ptx")
    for instruction in ("ld.global", "st.shared", "ld.shared", "st.global"):
        assert text.count(f"{instruction}.v4.b32") == 4
        assert text.count(f"{instruction}.b32") == 0


# Gather and scatter ------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [64, 100, 3])
@pytest.mark.parametrize("layout", ["static", "dynamic"])
def test_gather_and_scatter(columns, layout):
    table = random((50, columns))
    index = np.random.default_rng(5).permutation(50)[:20]
    rows = poisoned((20, columns))
    more = {"columns": 128} if layout == "dynamic" else {}
    wrap = static if layout == "static" else (lambda *a: a)
    gather_scatter.gather(*wrap(table, index, rows), **more)
    np.testing.assert_array_equal(rows, table[index])
    back = np.zeros_like(table)
    gather_scatter.scatter(*wrap(rows, index, back), **more)
    expected = np.zeros_like(table)
    expected[index] = table[index]
    np.testing.assert_array_equal(back, expected)


def test_indices_outside_leave_rows_alone():
    table, rows = random((10, 32)), np.full((4, 32), 7, np.float32)
    index = np.array([3, -1, 10, 2**40])
    gather_scatter.gather(*static(table, index, rows))
    np.testing.assert_array_equal(rows[0], table[3])
    assert (rows[1:] == 7).all()
    gather_scatter.scatter(*static(rows, index, table))
    assert (table[3] == rows[0]).all() and not (table == 7).any()


def test_a_race_free_transpose(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    x, y = random((64, 64)), poisoned((64, 64))
    transpose.transpose(*static(x, y))
    softmax.softmax(*static(x, y), threads=64)
    assert_close(y, softmax_of(x), "f32")


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("threads", [16, 64])
def test_norms_of_several_rows_one_after_another(monkeypatch, steps, threads):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    x, y = random((13, 512), "f16"), poisoned((13, 512), "f16")
    weight, bias = random((512,), "f16", seed=1), random((512,), "f16", seed=2)
    wide = x.astype(np.float64)
    args = static(x, weight, bias, y)
    normalization.rms_norm(args[0], args[1], args[3], 1e-5, threads=threads, steps=steps)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * weight
    assert_close(y, expected, "f16")
    y[:] = np.nan
    normalization.layer_norm(*args, 1e-5, threads=threads, steps=steps)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight + bias
    assert_close(y, expected, "f16")


# Every kernel, aligned and ragged, in rows and in columns, static and dynamic ---------------------


def normalized(x, weight, bias, centre):
    wide = x.astype(np.float64)
    wide = wide - wide.mean(axis=1, keepdims=True) if centre else wide
    scale = np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5)
    return wide / scale * weight.astype(np.float64) + bias


def case(kernel, x, order):
    """The function of a kernel, its arguments but for the output, the output, what it should be."""
    weight, bias = random(x.shape[1:], seed=1), random(x.shape[1:], seed=2)
    index = np.random.default_rng(3).permutation(x.shape[0])
    y = poisoned(x.shape, order=order)
    back = np.empty_like(x)
    back[index] = x
    return {
        "softmax": (softmax.softmax, (x,), (), y, softmax_of(x)),
        "rms_norm": (
            normalization.rms_norm, (x, weight), (1e-5,), y, normalized(x, weight, 0.0, False)
        ),
        "layer_norm": (
            normalization.layer_norm, (x, weight, bias), (1e-5,), y,
            normalized(x, weight, bias, True),
        ),
        "row_sum": (row_reduction.row_sum, (x,), (), poisoned(x.shape[:1]), x.sum(axis=1)),
        "gather": (gather_scatter.gather, (x, index), (), y, x[index]),
        "scatter": (gather_scatter.scatter, (x, index), (), y, back),
        "transpose": (transpose.transpose, (x,), (), poisoned(x.shape[::-1], order=order), x.T),
        "elementwise": (elementwise.elementwise_add, (x, x), (), y, x + x),
    }[kernel]  # fmt: skip


KERNELS = ("softmax", "rms_norm", "layer_norm", "row_sum", "gather", "scatter", "transpose",
    "elementwise")  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("layout", ["static", "dynamic"])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(8, 64), (7, 37)])
def test_each_kernel_in_each_layout(kernel, layout, order, shape):
    x = random(shape, order=order)
    function, inputs, scalars, out, expected = case(kernel, x, order)
    bounded = layout == "dynamic" and kernel not in ("transpose", "elementwise")
    wrap = static if layout == "static" else (lambda *a: a)
    function(*wrap(*inputs, out), *scalars, **({"columns": 64} if bounded else {}))
    assert_close(out, expected, "f32")
