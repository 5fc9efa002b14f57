"""Programs' own types as arguments: protocols, adapters, NamedTuples, dataclasses, lists."""

import ctypes
import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Constexpr, Float32, Int32
from basedsl_cute.cutlass_dsl import T, dsl_user_op, extract_mlir_values, new_from_mlir_values
from basedsl_cute.runtime import from_dlpack


class Act(enum.Enum):
    RELU = 1
    GELU = 2
    NONE = 3


# What is computed in the kernel, with CuTe's protocol of dynamic values.
class SeqlenInfo:
    def __init__(self, offset: Int32, length: Int32, *, loc=None, ip=None):
        self.offset, self.length = offset, length

    @staticmethod
    @cute.jit
    def create(batch: Int32, cu: cute.Tensor | None, default: Int32):
        if cutlass.const_expr(cu is None):
            return SeqlenInfo(Int32(0), default)
        return SeqlenInfo(cu[batch], cu[batch + 1] - cu[batch])

    def __extract_mlir_values__(self):
        values, self._counts = [], []
        for o in (self.offset, self.length):
            v = extract_mlir_values(o)
            values += v
            self._counts.append(len(v))
        return values

    def __new_from_mlir_values__(self, values):
        objs = []
        for o, n in zip((self.offset, self.length), self._counts, strict=True):
            objs.append(new_from_mlir_values(o, values[:n]))
            values = values[n:]
        return SeqlenInfo(*objs)


# Static and dynamic fields.
@dataclass
class Params:
    x: cute.Tensor
    y: cute.Tensor
    scale: Float32
    act: Constexpr[Act]
    name: Constexpr[str] = "p"
    cu: cute.Tensor | None = None


class Pair(NamedTuple):
    a: cute.Tensor
    rest: tuple[Int32, Int32]
    opt: cute.Tensor | None = None


@dataclass(frozen=True)
class TileScheduler:
    """walks over tiles; carried through a while loop"""

    tile: Int32
    step: Int32
    total: Int32

    def valid(self):
        return self.tile < self.total

    def next(self):
        return TileScheduler(self.tile + self.step, self.step, self.total)


@dsl_user_op
def scale_add(x: Float32, s: Float32, b: Float32, *, loc=None, ip=None) -> Float32:
    return x * s + b


@cute.jit
def activate(v, act: Constexpr[Act]):
    if cutlass.const_expr(act is Act.RELU):
        v = cute.where(v > 0.0, v, 0.0) if isinstance(v, cute.TensorSSA) else cutlass.max(v, 0.0)
    elif cutlass.const_expr(act is Act.GELU):
        v = 0.5 * v * (1.0 + cute.math.erf(v * 0.7071067811865476))
    return v


@cute.kernel
def ragged(p: Params, dtype: Constexpr[type[cutlass.Numeric]]):
    b = cute.arch.block_idx()[0]
    tid = cute.arch.thread_idx()[0]
    info = SeqlenInfo.create(b, p.cu, cute.size(p.x))
    sched = TileScheduler(tid, Int32(32), info.length)
    while sched.valid():
        i = info.offset + sched.tile
        p.y[i] = activate(scale_add(p.x[i].to(Float32), p.scale, Float32(b)), p.act).to(dtype)
        sched = sched.next()


@cute.jit
def ragged_host(
    p: Params, batches: Int32 = 1, *, dtype: Constexpr[type[cutlass.Numeric]] = Float32
):
    ragged(p, dtype).launch(grid=[batches, 1, 1], block=[32, 1, 1])


@cute.kernel
def many(tensors: list[cute.Tensor], out: cute.Tensor, pair: Pair, fns: Constexpr):
    i = cute.arch.thread_idx()[0]
    acc = Float32(0)
    for t, f in zip(tensors, fns, strict=True):
        acc += f(t[i])
    lo, hi = pair.rest
    if lo <= i and i < hi:
        acc += pair.a[i]
    if cutlass.const_expr(pair.opt is not None):
        acc -= pair.opt[i]
    out[i] = acc


@cute.jit
def many_host(tensors: list[cute.Tensor], out: cute.Tensor, pair: Pair, fns: Constexpr[tuple]):
    many(tensors, out, pair, fns).launch(grid=[1, 1, 1], block=[cute.size(out), 1, 1])


# A type of another library.
class MyBuffer:
    def __init__(self, arr):
        self.arr = arr


@cutlass.register_jit_arg_adapter(MyBuffer)
class MyBufferAdapter:
    def __init__(self, buf):
        self._t = from_dlpack(buf.arr).mark_layout_dynamic()

    def __c_pointers__(self):
        return self._t.__c_pointers__()

    def __get_mlir_types__(self):
        return self._t.__get_mlir_types__()

    def __new_from_mlir_values__(self, values):
        return self._t.__new_from_mlir_values__(values)


# CuTe's protocol of arguments.
class Range:
    def __init__(self, lo, hi):
        self._lo, self._hi = ctypes.c_int32(lo), ctypes.c_int32(hi)

    def __c_pointers__(self):
        return [ctypes.addressof(self._lo), ctypes.addressof(self._hi)]

    def __get_mlir_types__(self):
        return [T.i32(), T.i32()]

    def __new_from_mlir_values__(self, values):
        return RangeVal(Int32(values[0]), Int32(values[1]))


class RangeVal:
    def __init__(self, lo, hi):
        self.lo, self.hi = lo, hi

    def __extract_mlir_values__(self):
        return [self.lo.ir_value(), self.hi.ir_value()]

    def __new_from_mlir_values__(self, values):
        return RangeVal(Int32(values[0]), Int32(values[1]))


@cute.kernel
def fill_range(t: cute.Tensor, r):
    i = cute.arch.thread_idx()[0]
    if i >= r.lo and i < r.hi:
        t[i] = i * 10


@cute.jit
def fill_range_host(t: cute.Tensor, r):
    fill_range(t, r).launch(grid=[1, 1, 1], block=[cute.size(t), 1, 1])


def run_ragged(act=Act.RELU, cu=True):
    lens = [5, 0, 40, 3]
    c = np.cumsum([0, *lens]).astype(np.int32)
    x = np.random.default_rng(0).standard_normal(48).astype(np.float16)
    y = np.zeros_like(x)
    x_view, y_view, c_view = (from_dlpack(t).mark_layout_dynamic() for t in (x, y, c))
    p = Params(x_view, y_view, 2.0, act, cu=c_view if cu else None)
    f = cute.compile(ragged_host, p, 4 if cu else 1, dtype=cutlass.Float16)
    f(p, 4 if cu else 1)
    b = np.repeat(np.arange(4), lens) if cu else 0
    v = x.astype(np.float32) * 2 + b
    from math import erf

    w = {
        Act.RELU: np.maximum(v, 0),
        Act.NONE: v,
        Act.GELU: 0.5 * v * (1 + np.vectorize(erf)(v * 0.7071067811865476)),
    }[act]
    np.testing.assert_allclose(y, w, rtol=2e-3, atol=1e-3)


def run_many():
    ts = [np.arange(8, dtype=np.float32) + k for k in range(3)]
    out = np.zeros(8, np.float32)
    a = np.ones(8, np.float32) * 100
    fns = (lambda v: v * 2, lambda v: v - 1, lambda v: -v)
    many_host(ts, out, Pair(a, (2, 5)), fns)
    w = ts[0] * 2 + ts[1] - 1 - ts[2]
    w[2:5] += 100
    np.testing.assert_array_equal(out, w)
    many_host(tuple(ts), out, Pair(a, (0, 8), opt=a), fns)
    np.testing.assert_array_equal(out, ts[0] * 2 + ts[1] - 1 - ts[2])


def run_adapter():
    a = np.zeros(16, np.int32)
    fill_range_host(MyBuffer(a), Range(3, 9))
    w = np.where((np.arange(16) >= 3) & (np.arange(16) < 9), np.arange(16) * 10, 0)
    np.testing.assert_array_equal(a, w)
    a[:] = 0
    f = cute.compile(fill_range_host, MyBuffer(a), Range(0, 0))
    f(MyBuffer(a), Range(3, 9))
    np.testing.assert_array_equal(a, w)


def run():
    run_ragged()
    run_ragged(act=Act.GELU, cu=False)
    run_many()
    run_adapter()
