"""Slips of new users: people who come from CUDA C++, Triton, numba and NumPy, and anybody. Each has
a message that is graded; none is silent.

A message says *what* is wrong, *where*, and *what to write instead*: a point for each, given by
rule. `what` and `write` are words that its headline and its hint must have; the place must be the
line of the slip.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import logging
import statistics
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

HEAD = """import numpy as np
import basedsl_cute as cute

"""

KERNEL = (
    HEAD
    + """
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, h: cute.Tensor, n: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
{body}


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor, h: cute.Tensor, n: cute.Int32):
    kernel(x, y, h, n).launch(grid=1, block=32)


host(np.zeros(64, np.float32), np.zeros((8, 8), np.float32), np.zeros(16, np.int32), 5)
"""
)

HOST = (
    HEAD
    + """
@cute.kernel
def kernel(x: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    x[t] = 1.0


@cute.jit
def host(x: cute.Tensor, n: cute.Int32):
{body}


host(np.zeros(64, np.float32), 5)
"""
)

PYTHON = (
    HEAD
    + """
@cute.kernel
def kernel(x: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    x[t] = 1.0


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


x = np.zeros(64, np.float32)
{body}
"""
)


@dataclass(frozen=True)
class Slip:
    """`code` is put into `program`; `line` is the line of `code` that the message must name, or a
    piece of another line of the program.
    """

    program: str
    code: str
    what: str
    write: str
    line: int | str = 0

    @property
    def text(self) -> str:
        indent = "" if self.program is PYTHON else "    "
        body = "\n".join(indent + line for line in self.code.split("\n"))
        return self.program.format(body=body)

    @property
    def place(self) -> int:
        lines = self.text.split("\n")
        if isinstance(self.line, str):
            return next(n for n, line in enumerate(lines, 1) if self.line in line)
        first = self.program.split("{body}")[0].count("\n") + 1
        return first + self.line


@dataclass(frozen=True)
class Message:
    """The output of a program that failed, or a remark; `silent` if there was nothing."""

    text: str
    silent: bool


def run(slip: Slip, name: str) -> Message:
    """Run the program of a slip as the file `name`."""
    linecache.cache[name] = (len(slip.text), None, slip.text.splitlines(True), name)
    remarks = io.StringIO()
    handler = logging.StreamHandler(remarks)
    logger = logging.getLogger("basedsl.remarks")
    logger.addHandler(handler)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(slip.text, name, "exec", dont_inherit=True), {"__name__": "__main__"})
    except Exception as error:
        return Message("".join(traceback.format_exception(error)), False)
    finally:
        logger.removeHandler(handler)
    return Message(remarks.getvalue(), not remarks.getvalue())


def grade(slip: Slip, message: Message, name: str) -> tuple[bool, bool, bool]:
    """Return whether the message says what is wrong, where, and what to write instead."""
    before, _, hint = message.text.rpartition("hint: ")
    if not before:  # without a hint, or a remark, which is one text
        before = hint = message.text
        if not message.text.startswith("remark"):
            hint = ""
    places = (f"{name}:{slip.place}\n", f'"{name}", line {slip.place},')
    return slip.what in before, any(p in message.text for p in places), slip.write in hint


def kernel(code, what, write, line=0):
    return Slip(KERNEL, code, what, write, line)


def host(code, what, write, line=0):
    return Slip(HOST, code, what, write, line)


def python(code, what, write, line=0):
    return Slip(PYTHON, code, what, write, line)


THREAD = "cute.arch.thread_idx()"
VECTOR = "x.load() is the vector of its elements, x[i] one of them"
LAUNCH = ".launch(grid="

NAMES = [
    kernel("i = threadIdx.x", "'threadIdx' is not defined", THREAD),
    kernel("i = cute.threadIdx.x", "cute has no 'threadIdx'", THREAD),
    kernel("i = cute.arch.threadIdx.x", "cute.arch has no 'threadIdx'", THREAD),
    kernel("i = cute.arch.thread_id()", "cute.arch has no 'thread_id'", THREAD),
    kernel("i = cute.thread_idx()[0]", "cute has no 'thread_idx'", THREAD),
    kernel("i = cute.arch.thread_idx().x", "no attribute 'x'", "thread_idx()[0]"),
    kernel("i = cute.arch.block_idx.x", "no attribute 'x'", "block_idx()[0]"),
    kernel("i = t.x", "no attribute 'x'", "= cute.arch.thread_idx()"),
    kernel("i = t[0]", "not subscriptable", "x[i, j]"),
    kernel("i = cute.blockIdx.x", "cute has no 'blockIdx'", "cute.arch.block_idx()"),
    kernel("__syncthreads()", "'__syncthreads' is not defined", "cute.arch.sync_threads()"),
    kernel("cute.syncthreads()", "cute has no 'syncthreads'", "cute.arch.sync_threads()"),
    kernel("cute.arch.barrier", "named here and not called", "cute.arch.barrier()"),
    kernel("atomicAdd(h, 0, 1)", "'atomicAdd' is not defined", "cute.arch.atomic_add("),
    kernel("cute.atomic_add(h, 0, 1)", "cute has no 'atomic_add'", "cute.arch.atomic_add("),
    kernel("cute.arch.atomic_add(h, t, 1)", "takes 2 positional", "atomic_add(ptr, val"),
    kernel("cute.arch.atomic_add(h[0], 1)", "takes a pointer", "x.iterator + i"),
    kernel("v = cute.arch.shfl_down(x[t], 1)", "no 'shfl_down'", "cute.arch.shuffle_sync_down("),
    kernel("v = __shfl_down_sync(~0, x[t], 1)", "not defined", "cute.arch.shuffle_sync_down("),
    kernel("m = cute.ballot(t > 3)", "no 'ballot'", "cute.arch.vote_ballot_sync("),
    kernel("cute.arch.warp_reduce_sum(x[t])", "no 'warp_reduce_sum'", "warp_reduction_sum("),
    kernel("i = cute.arch.lane_id()", "no 'lane_id'", "cute.arch.lane_idx()"),
    kernel("cute.arch.thread_idx(0)", "takes 0 positional", "it is thread_idx()"),
    kernel("v = tl.load(x + t)", "'tl' is not defined", "x[i] reads an element"),
    kernel("pid = tl.program_id(0)", "'tl' is not defined", "cute.arch.block_idx()[axis]"),
    kernel("v = cute.load(x, t)", "cute has no 'load'", "x[i] reads an element"),
    kernel("i = cute.arange(0, 32)", "cute has no 'arange'", "the index of the thread"),
    kernel("v = cute.dot(y, y)", "cute has no 'dot'", "cute.gemm("),
    kernel("i = cuda.grid(1)", "'cuda' is not defined", "cute.arch.block_idx()[0] * "),
    kernel("s = cuda.shared.array(32, np.float32)", "'cuda' is not defined", "SmemAllocator()"),
    kernel("s = cute.shared_memory(32)", "no 'shared_memory'", "SmemAllocator()"),
    kernel("v = cute.sqroot(x[t])", "cute has no 'sqroot'", "cute.sqrt"),
    kernel("v = cute.float32(1.0)", "cute has no 'float32'", "cute.Float32"),
    kernel("v = cute.fabs(x[t])", "cute has no 'fabs'", "abs(x)"),
    kernel("x[t] = cute.random()", "cute has no 'random'", "passed as an array"),
    kernel("value = x[t]\nx[t] = valeu", "'valeu' is not defined", "did you mean value?", 1),
    python("cute.make_layot((2, 2))", "cute has no 'make_layot'", "cute.make_layout"),
    python("cute.Kernel", "cute has no 'Kernel'", "cute.kernel"),
    python("cute.from_numpy(x)", "cute has no 'from_numpy'", "cute.runtime.from_dlpack("),
    python("from basedsl_cute import jitt", "cute has no 'jitt'", "cute.jit"),
    python("from basedsl_cute.arch import threadIdx", "no 'threadIdx'", THREAD),
]

TENSORS = [
    kernel("s = x.sum()", "a tensor has no 'sum'", "x.load().reduce("),
    kernel("s = np.sum(x)", "NumPy computes while compiling", "x.load().reduce("),
    kernel("s = sum(x)", "a tensor is not iterated", "range(cute.size("),
    kernel("x[0] = 1.0 if 3.0 in x else 0.0", "a tensor is not iterated", "range(cute.size("),
    kernel("x.fill(0.0)", "a tensor of dynamic shape, (?):(1), is no vector", "static tiler"),
    kernel("x[0] = y[np.array([1, 2])]", "indexed with an ndarray", "integers, tuples of them"),
    kernel("v = cute.full((4,), 0.0, cute.Float32)\nv[0] = x[0]", "vector cannot", "rmem", line=1),
    kernel("v = cute.full((4,), 0.0, cute.Float32)\nb = 0.0 in v", "not iterated", "index", line=1),
    kernel("n = len(x)", "a tensor has no len()", "cute.size("),
    kernel("n = x.size", "a tensor has no 'size'", "cute.size(x)"),
    kernel("n = x.numel()", "a tensor has no 'numel'", "cute.size(x)"),
    kernel("n = x.ndim", "a tensor has no 'ndim'", "cute.rank(x)"),
    kernel("v = y.T", "a tensor has no 'T'", "cute.make_tensor(x.iterator"),
    kernel("v = x.view(8, 8)", "a tensor has no 'view'", "cute.make_tensor(x.iterator"),
    kernel("v = x[t].bitcast(cute.Int32)", "no attribute 'bitcast'", "from_elements([x]).bitcast("),
    kernel("v = x.reshape(8, 8)", "reshape() is of vectors", "x.load().reshape("),
    kernel("v = x.shap", "a tensor has no 'shap'", "x.shape"),
    kernel("x.foo = 1", "no attribute 'foo'", "x[i] = value"),
    kernel("z = x + x", "a tensor is memory", VECTOR),
    kernel("x += 1.0", "a tensor is memory", VECTOR),
    kernel("z = x == y", "a tensor is memory", VECTOR),
    kernel("v = cute.exp(x)", "a tensor is memory", VECTOR),
    kernel("if x:\n    pass", "no truth value", "compare cute.size("),
    kernel("for v in x:\n    pass", "not iterated", "range(cute.size("),
    kernel("v = x[-1]", "-1 is negative", "cute.size(x) - 1"),
    kernel("v = y[3, -1]", "-1 is negative", "x.shape[m] - 1"),
    kernel("v = x[t, 0]", "indexed with 2 coordinates", "one coordinate a mode"),
    kernel("v = y[0][1]", "not subscriptable", "x[i, j]"),
    kernel("v = x[0.5]", "indexed with a float", "//"),
    kernel("v = x[t / 2]", "indexed with a Float32", "//"),
    kernel("v = x[1:3]", "indexed with a slice", "cute.local_tile("),
    kernel('v = x["a"]', "indexed with a str", "integers"),
    kernel("x[t] = h[t]", "an Int32 is stored into a tensor of Float32", ".to(Float32)"),
    kernel("h[0] = 1.5", "a float is stored into a tensor of Int32", "int("),
    kernel("h[0] = 3000000000", "does not fit Int32", "wider type"),
    kernel("x[t] = y", "a Tensor is stored", "y[i]"),
    kernel("x[t] = None", "None is stored", "store a number"),
    kernel("x[t] = (1, 2)", "a tuple is stored", "one by one"),
    kernel("x.fill(n)", "an Int32 is stored", ".to(Float32)"),
    kernel("x.store(x.load() + 1)", "dynamic shape", "tile it"),
    kernel("cute.copy(x, h)", "takes a copy atom", "cute.make_copy_atom("),
    kernel("s = cute.make_rmem_tensor(4)", "missing 1 required", "make_rmem_tensor(shape_or_"),
    kernel("s = cute.make_rmem_tensor((n,), cute.Float32)", "static layout", "Constexpr"),
    kernel("x[t + 60] = 1.0", "out-of-bounds write", "if i < cute.size(x)"),
    kernel("a = cute.zeros_like(x)", "a vector has a static shape", "static tiler"),
]

VALUES = [
    kernel("v = np.sqrt(x[t])", "does not support ufuncs", "cute.math.sqrt("),
    kernel("a = np.arange(n)", "np.arange() runs while compiling", "Constexpr"),
    kernel("a = np.zeros(4)\nx[t] = a[n]", "only integers", "as a cute.Tensor", 1),
    kernel("v = [0] * n", "needs a number now", "Constexpr"),
    kernel("print(x[t])", "made while compiling", "cute.printf("),
    kernel('cute.printf(f"{x[t]}")', "made while compiling", "cute.printf("),
    kernel('cute.printf("%d %d", t)', "2 conversion(s) and 1", "one value for each"),
    kernel("v = x[t].astype(np.float16)", "no attribute 'astype'", ".to(cute.Float16)"),
    kernel("v = x[t].to(np.float16)", "takes a numeric type", ".to(Float32)"),
    kernel("v = 1 << x[t]", "needs integers", ".to(Int32)"),
    kernel("if t > 2:\n    v = 1.0\nx[t] = v", "not bound on every path", "give 'v' a value", 2),
    kernel("for i in range(n):\n    v = x[i]\nx[0] = v", "not bound", "give 'v' a value", 2),
    kernel("s = [x[i] for i in range(n)]", "cannot be iterated", "`for` statement"),
    kernel("return x[t]", "kernels return none", "into a tensor"),
    kernel("if t > 3:\n    return 1", "a kernel returns no value", "into a tensor", 1),
    kernel("try:\n    x[t] = 1.0\nexcept IndexError:\n    pass", "`try`", "out of it", 1),
    kernel("kernel(x, y, h, n)", "which is not allowed", "a @jit function"),
    kernel("v = cute.Float(1.0)", "abstract number type", "Float32"),
]

LAUNCHES = [
    host("kernel(x)", "never launched", LAUNCH),
    host("kernel(x).launch(1, 8)", "extents by name", "launch(grid="),
    host("kernel[(1,), (64,)](x)", "no launch extents in brackets", LAUNCH),
    host("kernel(x).launch(grid=1)", "needs block=", "block="),
    host("kernel(x).launch(grid=1, blocks=8)", "no argument 'blocks'", "block="),
    host("kernel(x).run()", "it has no 'run'", LAUNCH),
    host("kernel(x)(grid=1, block=1)", "already has its arguments", LAUNCH),
    host("kernel.launch(grid=1, block=1)", "missing the kernel's arguments", LAUNCH),
    host("kernel(x).launch(grid=1, block=1, smem=-4)", "0 or more bytes, got -4", "leave it out"),
    python("host(a=x)", "got an unexpected keyword argument 'a'", "it takes (x)"),
    host("kernel().launch(grid=1, block=1)", "missing a required argument: 'x'", "it takes (x)"),
    host("kernel(x).launch(grid=1, block=2048)", "2048 in x", "fewer threads"),
    host("kernel(x).launch(grid=n / 4, block=4)", "must be an integer", "//"),
    host("kernel(x).launch(grid=1, block=128)", "out-of-bounds", "if i < cute.size(", "x[t] = 1.0"),
    host("kernel(np.zeros(4)).launch(grid=1, block=1)", "only", "as a cute.Tensor", "x[t] = 1.0"),
    host("t, _, _ = cute.arch.thread_idx()", "only be used in a kernel", "@kernel"),
    host("print(x[0])", "made while compiling", "cute.printf("),
    host("return x", "cannot be returned", "an array that the caller", "def host"),
    python("kernel(x)", "which is not allowed", "launch it from a @jit function"),
    python("kernel[1, 32](x)", "no launch extents in brackets", LAUNCH),
    python("host(np.zeros((), np.float32))", "without modes", "x[()]", "x[t] = 1.0"),
    python("host[1, 32](x)", "called without brackets", "host(...)"),
    python("host.launch(grid=1, block=32)", "it is called", "host(...)"),
    python("host()", "missing a required argument: 'x'", "it takes (x)"),
    python("host([1.0, 2.0])", "got list", "NumPy"),
    python("host(np.zeros(64, np.complex64))", "complex64", "np.float32"),
    python("host(np.zeros(16, np.float32))", "out-of-bounds", "if i <", "x[t] = 1.0"),
    python("cute.compile(kernel, x)", "is a kernel", "compile the @jit function"),
    python("cute.compile(host, x)(x, x)", "takes 1 arguments", "left out"),
    python("cute.compile(host, x)(np.zeros(64, np.int32))", "elements are Int32", "compile again"),
    python("cute.arch.thread_idx()", "works only inside a function", "@kernel"),
    python("cute.make_layout((2, 2), strides=(1, 2))", "'strides'", "make_layout(shape, stride"),
    python("cute.make_layout((2, 2), stride=(1,))", "differ in profile", "stride"),
    python("cute.make_layout((2.0, 2))", "not an integer", "divide with //"),
]

# Tried a second time, by people from CUDA C++, Triton, numba and NumPy: `write` is null of those
# whose message has no hint.
ROWS = json.loads(Path(__file__).with_name("more_slips.json").read_text())
MAKERS = {"kernel": kernel, "host": host, "python": python}
MORE = [
    MAKERS[row["program"]](row["code"], row["what"], row["write"] or "(nothing)", row["line"])
    for row in ROWS
]

SLIPS = NAMES + TENSORS + VALUES + LAUNCHES + MORE


#: A slip whose message has two points: it says no more than what is wrong, and where.
TWO_POINTS = {row["code"] for row in ROWS if row["write"] is None}


@pytest.fixture(autouse=True)
def _on_the_simulator(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")


@pytest.mark.parametrize("slip", SLIPS, ids=[slip.code.split("\n")[-1] for slip in SLIPS])
def test_message(slip):
    name = f"slip{SLIPS.index(slip)}.py"
    message = run(slip, name)
    assert not message.silent, slip.code
    says = dict(zip(("what", "where", "write"), grade(slip, message, name), strict=True))
    missing = {point for point, said in says.items() if not said}
    assert missing == ({"write"} if slip.code in TWO_POINTS else set()), message.text


def test_grades_are_high_enough():
    grades = [2 if slip.code in TWO_POINTS else 3 for slip in SLIPS]
    assert len(grades) >= 100
    assert statistics.mean(grades) >= 2.8


def test_a_poor_message_gets_a_poor_grade():
    slip = kernel("i = threadIdx.x", "'threadIdx' is not defined", THREAD)
    silent, poor = Message("", True), Message("NameError: name 'threadIdx' is not defined", False)
    assert grade(slip, silent, "a.py") == (False, False, False)
    assert grade(slip, poor, "a.py") == (True, False, False)
