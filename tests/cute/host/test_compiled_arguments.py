"""A compiled function refuses what it was not compiled for, naming argument, expected and got; on
the first call, by Python, and on later ones, when native code makes the calls.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_toy as toy
from basedsl.arrays.array_record import CUDA, ArrayRecord
from basedsl.errors import DSLCallError
from basedsl_cute.arrays.tensor import HostTensor
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    target[i] = source[i]


@cute.jit
def copied(source: cute.Tensor, target: cute.Tensor):
    copy(source, target).launch(grid=1, block=8)


@toy.jit
def scaled(values: toy.Buffer, by: toy.Float64):
    return values[0] * by


def aligned(n, offset=0, dtype=np.float32):
    """`n` elements at `offset` bytes behind a multiple of 64."""
    store = np.zeros(n * 8 + 128, np.uint8)
    skip = -store.ctypes.data % 64 + offset
    return store[skip : skip + n * np.dtype(dtype).itemsize].view(dtype)


def on_gpu(number=0):
    """A tensor that says it is on a GPU; nothing reads what is there."""
    return HostTensor(ArrayRecord(0x10000, (2, 32, 1), (8,), (1,), (CUDA, number)), None, False)


def frozen():
    array = aligned(8)
    array.flags.writeable = False
    return array


WRONG = {
    "dtype": (lambda: aligned(8, dtype=np.float64), "the elements are Float64"),
    "rank": (lambda: aligned(8).reshape(2, 4), r"it has 2 mode\(s\)"),
    "alignment": (lambda: aligned(8, offset=4), "is not aligned to 16 bytes"),
    "device": (on_gpu, "it is on cuda:0"),
    "read-only": (frozen, "it is read-only"),
}


TORCH = ("dtype", "rank", "alignment")  # the others are made as NumPy's are


def torch_values():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return {
        "dtype": torch.zeros(8, dtype=torch.float64),
        "rank": torch.zeros(2, 4),
        "alignment": torch.zeros(9)[1:],
    }


@pytest.mark.parametrize("warm", [0, 4], ids=["python", "native"])
@pytest.mark.parametrize(
    "library, what", [*(("numpy", what) for what in WRONG), *(("torch", what) for what in TORCH)]
)
def test_cute(what, library, warm):
    make, words = WRONG[what]
    if library == "torch":
        values = torch_values()
        make = lambda: values[what]  # noqa: E731
    source, target = aligned(8), aligned(8)
    source[:] = range(8)
    compiled = cute.compile(copied, source, target)
    for _ in range(warm):
        compiled(source, target)
    target[:] = -1
    expected = rf"^'source' was compiled as Tensor\[Float32, 1\] \(\?\):\(1\) on cpu.*; .*{words}"
    with pytest.raises(DSLCallError, match=expected):
        compiled(make(), target)
    assert (target == -1).all()
    compiled(source, target)
    assert (target == range(8)).all()


@pytest.mark.parametrize("warm", [0, 4], ids=["python", "native"])
def test_static_shape(warm):
    source, target = (from_dlpack(aligned(8)) for _ in range(2))
    compiled = cute.compile(copied, source, target)
    for _ in range(warm):
        compiled(source, target)
    with pytest.raises(DSLCallError, match=r"^'target' was.*\(8\):\(1\).*mode 0 is 9, not 8"):
        compiled(source, from_dlpack(aligned(9)))
    with pytest.raises(DSLCallError, match=r"^'source' was.*\(8\):\(1\).*mode 0 is 4, not 8"):
        compiled(aligned(4), target)


@pytest.mark.parametrize("number", [1, None])
def test_code_for_a_gpu_refuses_other_places(number):
    compiled = cute.compile(copied, on_gpu(), on_gpu(), options="--arch sm_90a")
    wrong, place = (aligned(8), "cpu") if number is None else (on_gpu(number), f"cuda:{number}")
    with pytest.raises(DSLCallError, match=rf"^'target' was .* on cuda:0.*; it is on {place}"):
        compiled(on_gpu(), wrong)


@pytest.mark.parametrize("warm", [0, 4], ids=["python", "native"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ((np.zeros(4, np.float32), 2.0), r"^'values' was compiled as .*float64.*, got .*float32"),
        ((np.zeros((2, 2)), 2.0), r"^'values' was compiled as .*1.*, got .*2"),
        ((np.zeros(4), "2"), r"^'by' is declared Float64, got"),
        ((3, 2.0), r"^'values'"),
        ((np.zeros(4),), r"^missing the argument 'by'$"),
        ((np.zeros(4), 1.0, 2.0), r"^this compiled function takes 2 arguments"),
    ],
    ids=["dtype", "rank", "no number", "no buffer", "too few", "too many"],
)
def test_toy(wrong, words, warm):
    compiled = toy.compile(scaled, np.ones(4), 2.0)
    for _ in range(warm):
        assert compiled(np.ones(4), 2.0) == 2.0
    with pytest.raises(DSLCallError) as caught:
        compiled(*wrong)
    message = caught.value.message
    assert re.search(words, message, re.IGNORECASE), message


@cute.kernel
def add_or_copy(x, y, out):
    i = cute.arch.thread_idx()[0]
    out[i] = (x[i] if y is None else x[i] + y[i]).to(out.element_type)


@cute.jit
def added(x: cute.Tensor, y: cute.Tensor | None, kind, out: cute.Tensor, times=1):
    assert kind is cute.Float32
    for _ in range(times):
        add_or_copy(x, y, out).launch(grid=1, block=8)


def test_what_is_static_without_a_declaration_may_be_passed_again_or_left_out():
    x, out = aligned(8), aligned(8)
    x[:] = range(8)
    compiled = cute.compile(added, x, None, cute.Float32, out)
    calls = [
        lambda: compiled(x, None, cute.Float32, out, 1),
        lambda: compiled(x, None, cute.Float32, out),
        lambda: compiled(x, out),
        lambda: compiled(x, None, out),
        lambda: compiled(x, out=out, y=None),
        lambda: compiled(x, None, cute.Float32, out, times=1),
    ]
    for call in calls + calls:
        out[:] = -1
        call()
        assert (out == range(8)).all()
    with pytest.raises(DSLCallError, match=r"^'kind' was compiled as static .*Float32.*Float16"):
        compiled(x, None, cute.Float16, out)
    with pytest.raises(DSLCallError, match=r"^'y' was compiled as static None, got Tensor"):
        compiled(x, x, cute.Float32, out, 1)
    with pytest.raises(DSLCallError, match=r"^this compiled function takes 3 arguments"):
        compiled(x, x, out, 1, 1, 1)


@cute.kernel
def count_kernel(x: cute.Tensor, out: cute.Tensor):
    out[0] = cute.size(x)


@cute.jit
def counted(x: cute.Tensor, out: cute.Tensor):
    count_kernel(x, out).launch(grid=1, block=1)


EMPTY = [(0, 8), (8, 0), (0, 0)]


@pytest.mark.parametrize("warm", [0, 4], ids=["python", "native"])
@pytest.mark.parametrize("leading", [0, 1])
def test_arrays_without_elements_have_the_strides_of_compact_ones(warm, leading):
    def marked(x):
        return from_dlpack(x).mark_layout_dynamic(leading_dim=leading)

    x, out = np.zeros((4, 8), np.float32, order="CF"[1 - leading]), np.zeros(1, np.int32)
    compiled = cute.compile(counted, marked(x), out)
    for _ in range(warm):
        compiled(x, out)
    for shape in EMPTY:
        for order in "CF":
            out[0] = -1
            compiled(np.zeros(shape, np.float32, order=order), out)
            assert out[0] == 0
    compiled(x, out)
    assert out[0] == 32


@pytest.mark.parametrize("shape", [*EMPTY, (3, 0, 5)])
def test_arrays_without_elements_compile_code_for_others(shape):
    empty, out = np.zeros(shape, np.float32), np.zeros(1, np.int32)
    last = len(shape) - 1
    view = from_dlpack(empty).mark_layout_dynamic(leading_dim=last)
    compiled = cute.compile(counted, view, out)
    compiled(empty, out)
    assert out[0] == 0
    other = np.zeros([n + 2 for n in shape], np.float32)
    compiled(other, out)
    assert out[0] == other.size
