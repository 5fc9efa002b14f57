"""Arguments of `@jit` functions besides arrays, and the options of a call."""

import dataclasses
import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import List, NamedTuple, Optional, Tuple, Type  # noqa: UP035

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl import DSLError
from basedsl.testing import TraceLog
from basedsl_cute.runtime import (
    from_dlpack,
    make_fake_compact_tensor,
    make_fake_stream,
)


@cute.kernel
def add_kernel(x: cute.Tensor, v: cutlass.Float32):
    x[cute.arch.thread_idx()[0]] += v


def add(x, v, **launch):
    add_kernel(x, v).launch(grid=[1], block=[4], **launch)


@pytest.fixture
def x():
    return np.zeros(4, np.float32)


def test_a_stream_with_a_default(target, x):
    cuda = pytest.importorskip("cuda.bindings.driver")
    default = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)

    @cute.jit
    def f(x: cute.Tensor, stream: cuda.CUstream = default):
        add(x, 1.0, stream=stream)

    f(x)
    f(x, cuda.CUstream(0))
    compiled = cute.compile(f, x)
    compiled(x)
    compiled(x, stream=cuda.CUstream(0))
    assert (x == 4).all()


@cute.kernel
def optional_kernel(
    x: cute.Tensor,
    bias: Optional[cute.Tensor],  # noqa: UP045
    scale: Optional[cutlass.Float32],  # noqa: UP045
):
    value = cutlass.Float32(1.0) if bias is None else bias[0]
    if cutlass.const_expr(scale is not None):
        value = value * scale
    x[cute.arch.thread_idx()[0]] += value


def test_what_is_optional(target, x):
    @cute.jit
    def f(
        x: cute.Tensor,
        bias: Optional[cute.Tensor] = None,  # noqa: UP045
        scale: cutlass.Float32 | None = None,
        count: Optional[cutlass.Constexpr[int]] = None,  # noqa: UP045
    ):
        assert count is None or type(count) is int
        optional_kernel(x, bias, scale).launch(grid=[1], block=[4])

    f(x)
    f(x, np.full(1, 3, np.float32), count=2)
    f(x, None, 5.0)
    assert (x == 9).all()


def test_static_kinds(sim, x):
    class Mode(enum.Enum):
        ONE = 1
        TWO = 2

    seen = []

    @cute.jit
    def f(
        x: cute.Tensor,
        mode: Mode,
        dtype: Type[cutlass.Numeric] = cutlass.Float32,  # noqa: UP006
        op: cutlass.Constexpr[Callable] = abs,
        shape: cutlass.Constexpr[tuple] = (1, 2),
    ):
        seen.append((mode, dtype, shape))
        add(x, op(dtype(mode.value)))

    f(x, Mode.ONE)
    f(x, Mode.TWO, op=lambda v: v * 3.0, shape=(3, 4))
    assert (x == 7).all()
    assert seen == [(Mode.ONE, cute.Float32, (1, 2)), (Mode.TWO, cute.Float32, (3, 4))]


class Problem(NamedTuple):
    x: cute.Tensor
    v: cutlass.Float32
    count: cutlass.Constexpr[int]


@dataclasses.dataclass(frozen=True)
class Settings:
    v: cutlass.Float32
    shape: cute.Shape
    kind: str = "plain"


@cute.kernel
def trees_kernel(
    p: Problem,
    s: Settings,
    xs: List[cute.Tensor],  # noqa: UP006
    t: Tuple[cutlass.Int32, cute.Shape],  # noqa: UP006
):
    i = cute.arch.thread_idx()[0]
    if i < p.count:
        p.x[i] = p.v + s.v
    for other in xs:
        other[i] = (t[0] + t[1][1] + s.shape[0]).to(cutlass.Float32)


@cute.jit
def trees(p: Problem, s: Settings, xs: List[cute.Tensor], t: cute.Shape):  # noqa: UP006
    assert type(p.count) is int and s.kind == "plain"
    assert isinstance(t[0], cutlass.Int32)
    doubled = dataclasses.replace(s, v=s.v * 2.0)
    trees_kernel(p, doubled, xs, t).launch(grid=(1, 1, 1), block=(4, 1, 1))


def test_trees(target, x):
    others = [np.zeros(4, np.float32) for _ in range(2)]
    trees(Problem(x, 1.0, 3), Settings(0.5, (10, 20)), others, (1, (2, 3)))
    assert x.tolist() == [2, 2, 2, 0]
    assert all((other == 14).all() for other in others)


@cute.jit
def into(bag, x):
    bag.total = bag.a + bag.b
    add(x, bag.total)


@cute.jit
def through_a_bag(x: cute.Tensor, v: cutlass.Float32):
    bag = SimpleNamespace(a=v, b=cutlass.Float32(1.0))
    into(bag, x)
    if v > 1.0:
        bag.a = v * 2.0
    add(x, bag.a + bag.total)


def test_a_simple_namespace_goes_from_function_to_function(sim, x):
    through_a_bag(x, 2.0)
    assert (x == 3 + 4 + 3).all()


class Buffer:
    def __init__(self, array):
        self.array = array


class PartOfBuffer(Buffer):
    pass


@cute.register_jit_arg_adapter(Buffer)
def adapt_buffer(buffer):
    return from_dlpack(buffer.array, assumed_align=4)


@cute.jit
def takes_buffer(buffer, v: cutlass.Float32):
    add(buffer, v)


def test_an_adapter_for_a_type_of_ones_own(target, x):
    takes_buffer(Buffer(x), 1.0)
    compiled = cute.compile(takes_buffer, Buffer(x), 1.0)
    compiled(PartOfBuffer(x), 2.0)
    assert (x == 3).all()
    with pytest.raises(DSLError, match="for classes, not for"):
        cute.register_jit_arg_adapter("Buffer")


class Scaled:
    scale = 3.0

    @staticmethod
    @cute.jit
    def plain(x: cute.Tensor):
        add(x, 1.0)

    @cute.jit
    def __call__(self, x: cute.Tensor, *, v: cutlass.Float32 = 2.0):
        self.launch(x, v)

    def launch(self, x, v):
        add(x, v * self.scale)


def test_methods(sim, x):
    scaled = Scaled()
    Scaled.plain(x)
    scaled(x)
    scaled(x, v=1.0)
    assert (x == 10).all()
    scaled.scale = 10.0
    scaled(x, v=1.0)
    cute.compile(scaled, x)(x, v=0.5)
    assert (x == 25).all()


def test_numbers_are_no_arrays(x):
    @cute.jit
    def f(n: cutlass.Int32):
        pass

    for wrong in (1.5, "text", x):
        with pytest.raises(DSLError, match="declared Int32"):
            f(wrong)


def test_the_frameworks_stream_is_left_out_of_the_call(target, x):
    @cute.jit
    def f(x: cute.Tensor, stream):
        add(x, 1.0, stream=stream)

    fake = make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(),), assumed_align=4)
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    compiled = cute.compile(f, fake, stream, options="--enable-tvm-ffi")
    for _ in range(3):
        compiled(_on(target, x))
    if target == "sim":
        assert (x == 3).all()


def _on(target, x):
    if target == "sim":
        return x
    torch = pytest.importorskip("torch")
    return torch.zeros(4, device="cuda")


def test_a_call_may_go_around_the_cache(sim, x):
    traced = TraceLog()

    @cute.jit(preprocessor=True)
    def f(x: cute.Tensor):
        traced.append(1)
        add(x, 1.0)

    f(x)
    f(x)
    assert len(traced) == 1
    f(x, no_cache=True)
    assert len(traced) == 2 and (x == 3).all()


def test_names_in_profilers(sim, x):
    @cute.kernel
    def work(x: cute.Tensor):
        x[0] = 1.0

    @cute.jit
    def host(x: cute.Tensor):
        work(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    work.set_name_prefix("mine_", remove_cutlass_symbol=True, keep_mangled_name=False)
    host.set_name_prefix("my_", remove_cutlass_symbol=True)
    text = cute.compile(host, x).__mlir__
    assert "gpu.func @mine_" in text and "func.func @my_test_names" in text
