"""Compiling without data: symbols, promises, and checks when data arrives."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.runtime import make_fake_compact_tensor, make_fake_stream, make_fake_tensor


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    for i in range(tid, cute.size(a), 32):
        c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=(1, 1, 1), block=(32, 1, 1))


def fakes(dtype=cute.Float32, **kwargs):
    m, n = cute.sym_int(), cute.sym_int(divisibility=4)
    return [make_fake_compact_tensor(dtype, (m, n), stride_order=(1, 0), **kwargs) for _ in "abc"]


def test_symbols_in_the_ir(sim):
    compiled = cute.compile(add, *fakes(assumed_align=16))
    assert '"gmem align<16>", "(?,?{div=4}):(?{div=4},1)"' in compiled.__mlir__
    a, b = np.random.default_rng(0).random((2, 5, 12), "f4")
    c = np.zeros_like(a)
    compiled(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_equal_symbols_are_checked_at_the_call(sim):
    compiled = cute.compile(add, *fakes())
    a, b = np.zeros((5, 12), "f4"), np.zeros((5, 8), "f4")
    with pytest.raises(Exception, match="extent of 'b' differs from that of 'a'"):
        compiled(a, b, a)


def test_divisibility_is_checked_at_the_call(sim):
    compiled = cute.compile(add, *fakes())
    a = np.zeros((5, 10), "f4")
    with pytest.raises(
        Exception, match=r"'a' was compiled as .*extent 10 of mode 1 is no multiple"
    ):
        compiled(a, a, a)


def test_alignment_is_checked_at_the_call(sim):
    compiled = cute.compile(add, *fakes(assumed_align=16))
    buffer = np.zeros(64, "f4")
    start = (-buffer.ctypes.data // 4) % 4
    good = buffer[start : start + 16].reshape(4, 4)
    bad = buffer[start + 1 : start + 17].reshape(4, 4)
    compiled(good, good, good)
    with pytest.raises(Exception, match=r"'b' was compiled as .*not aligned to 16 bytes"):
        compiled(good, bad, good)


def test_layouts():
    m = cute.sym_int(8)
    assert (
        str(make_fake_compact_tensor(cute.Int8, (m, 3)))
        == "FakeTensor<Int8, (?{div=8},3):(1,?{div=8})>"
    )
    assert make_fake_compact_tensor(cute.Int8, (2, 3, 4)).stride == (1, 2, 6)
    assert make_fake_compact_tensor(cute.Int8, (2, 3, 4), (2, 1, 0)).stride == (12, 4, 1)
    s = cute.sym_int64()
    made = make_fake_tensor(cute.Int8, (m, 4), (s, 1), assumed_align=8)
    assert (made.align, made.stride, made.element_type) == (8, (s, 1), cute.Int8)


def test_nested_modes(sim):
    m, n = cute.sym_int(divisibility=2), cute.sym_int(4)
    shape = ((m, 3), n)
    fake = make_fake_compact_tensor(cute.Float32, shape, stride_order=((2, 1), 0))
    assert str(fake) == ("FakeTensor<Float32, ((?{div=2},3),?{div=4}):((?{div=12},?{div=4}),1)>")
    seen = []

    @cute.kernel
    def kernel(x: cute.Tensor):
        seen.append(str(x.layout))
        if cute.arch.thread_idx()[0] < cute.size(x, mode=[0, 1]):
            i = cute.arch.thread_idx()[0]
            x[(1, i), 2] = x[(0, i), 2] + 1.0

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    compiled = cute.compile(host, fake)
    assert "((?{div=2},3),?{div=4}):((?{div=12},?{div=4}),1)" in compiled.__mlir__
    x = np.zeros((2, 3, 8), "f4")
    compiled(x)
    np.testing.assert_array_equal(x[1, :, 2], 1)
    assert x.sum() == 3
    with pytest.raises(Exception, match="extent of mode 1 is 4, not 3"):
        compiled(np.zeros((2, 4, 8), "f4"))
    strided = make_fake_tensor(cute.Int8, ((2, m), 4), ((1, cute.sym_int()), 2))
    assert str(strided) == "FakeTensor<Int8, ((2,?{div=2}),4):((1,?),2)>"


def test_64_bit_symbols(sim):
    n = cute.sym_int64()
    x = make_fake_compact_tensor(cute.Float32, (n,))
    compiled = cute.compile(add, x, x, x)
    assert "%arg1: i64" in compiled.__mlir__
    a, b = np.random.default_rng(0).random((2, 45), "f4")
    c = np.zeros_like(a)
    compiled(a, b, c)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: make_fake_tensor(cute.Int8, (2, 3), (1,)), "differ in rank"),
        (lambda: make_fake_tensor(cute.Int8, ((2, 3), 4), (1, (2, 3))), "differ in rank or nest"),
        (lambda: make_fake_tensor(cute.Int8, (2.5,), (1,)), "neither an int nor a symbol"),
        (lambda: make_fake_compact_tensor(cute.Int8, (2, 3), (1, 1)), "does not number"),
        (lambda: make_fake_tensor("f4", (2,), (1,)), "element type"),
        (lambda: cute.sym_int(0), "positive"),
    ],
)
def test_errors(make, message):
    with pytest.raises(Exception, match=message):
        make()


def test_a_fake_cannot_be_run(sim):
    with pytest.raises(Exception, match="has no data"):
        add(*fakes())


@cute.jit
def on_stream(a: cute.Tensor, stream: cute.Stream):
    add_kernel(a, a, a).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)


def test_fake_stream(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    compiled = cute.compile(on_stream, fakes()[0], make_fake_stream())
    assert "ptx" in compiled.stages


def test_fake_tensors_of_pytorch(sim):
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(5, 12)
    marked = cute.runtime.from_dlpack(fake, assumed_align=16).mark_layout_dynamic()
    assert str(marked.layout) == "(?,?):(?,1)"
    a, b = torch.rand(2, 7, 8)
    for x in (fake, marked):
        c = torch.zeros(7, 8)
        cute.compile(add, x, x, x)(a, b, c)
        assert torch.equal(c, a + b)
        with pytest.raises(DSLTypeError, match="'a' has no data"):
            add(x, x, x)


def test_a_tensor_whose_memory_was_freed(sim):
    torch = pytest.importorskip("torch")
    a, b, c = torch.zeros(3, 2, 8)
    compiled = cute.compile(add, a, b, c)
    b = b.clone()
    b.untyped_storage().resize_(0)
    for call in (compiled, add):
        with pytest.raises(DSLTypeError, match="'b' has no data: its address is 0"):
            call(a, b, c)
