"""Repeated calls pass to the kernels of Hopper, bit by bit, what calls by Python pass.

A pretended driver writes launches down.
"""

from __future__ import annotations

import ctypes
import re

import pytest

from basedsl_cute.device import driver
from basedsl_cute.device.launch_checks import LaunchParameters, python_launcher
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.executors import gpu
from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.ops import attention, attention_backward
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash import gradients
from basedsl_cute.ops.flash.gradient_plan import gradient_plans
from basedsl_cute.ops.flash.plan import plans

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::basedsl_cute.dsl.steps.SpillWarning"),
]
LIMITS = LaunchLimits((2**31 - 1, 65535, 65535), (1024, 1024, 64), 1024, 232448)
MADE = []
BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8}


def read(launch: LaunchParameters) -> tuple:
    """The launch and the bytes of all its arguments."""
    found = []
    for i, kind in enumerate(launch.kernel.arguments):
        array = re.search(r"array<(\d+) x i8>", kind)
        size = int(array[1]) if array else BYTES.get(kind, 8)
        found.append(ctypes.string_at(launch.argument_address(i), size))
    return (*launch[:-1], *found)


class Arena:
    """New arrays lie at the same places in each call."""

    def __init__(self):
        self.memory = torch.zeros(2**26, dtype=torch.uint8)
        self.used = -self.memory.data_ptr() % 512

    def empty(self, shape, dtype, like):
        size = torch.Size(shape).numel() * dtype.itemsize
        found = self.memory[self.used : self.used + size].view(dtype).view(shape)
        self.used += -(-size // 512) * 512
        return found


@pytest.fixture
def launches(monkeypatch):
    """The launches of a call: `launches(call)`."""

    def launcher(image, table):
        return python_launcher(table, LIMITS, lambda launch: MADE.append(read(launch)))

    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    monkeypatch.setattr(gpu, "gpu_launcher", launcher)
    monkeypatch.setattr(gpu, "_WithCopies", lambda calls, arguments: calls)
    monkeypatch.setattr(driver, "require", lambda *_: None)
    monkeypatch.setattr(driver, "ensure_context", lambda: None)
    monkeypatch.setattr(HardwareInfo, "get_device_multiprocessor_count", lambda self: 132)
    lib = library(torch.zeros(1))

    def of(call):
        arena = Arena.shared
        arena.used = -arena.memory.data_ptr() % 512
        MADE.clear()
        with monkeypatch.context() as patch:
            patch.setattr(type(lib), "empty", lambda self, *given: arena.empty(*given))
            patch.setattr(type(lib), "empty_like", lambda self, x: arena.empty(x.shape, x.dtype, x))
            call()
        return list(MADE)

    Arena.shared = Arena()
    forget()
    yield of
    del Arena.shared
    forget()


def forget():
    """Drop the plans, and the code that is loaded with a driver."""
    plans.clear()
    gradient_plans.clear()
    flash._launch.forget()
    gradients._launch.forget()


def half(*shape, dtype=torch.float16):
    return torch.randn(*shape).to(dtype)


def cases():
    """Operands' extents, their type, and the options, anew in each call."""
    heads, starts = (lambda: torch.rand(4)), (lambda: torch.tensor([0, 90, 200], dtype=torch.int32))

    def used():
        return torch.tensor([100, 250], dtype=torch.int32)

    def pages():
        return torch.arange(32, dtype=torch.int32).view(2, 16)

    long, few = [(2, 200, 4, 64), (2, 260, 2, 64)], [(2, 1, 4, 128), (2, 512, 1, 128)]
    yield "long", long, {}
    yield "logarithms", long, {"return_lse": lambda: True, "causal": lambda: True}
    yield "arrays", long, {"alibi": heads, "sinks": heads, "bias": lambda: torch.rand(200, 260)}
    yield "few", few, {}
    yield "few with logarithms", few, {"return_lse": lambda: True, "sinks": heads}
    splits = Config((16, 64), 1, 4, splits=2)
    yield "splits", few, {"config": lambda: splits, "return_lse": lambda: True}
    packed = {"cu_seqlens_q": starts, "cu_seqlens_k": starts}
    yield "packed", [(200, 4, 64), (200, 2, 64)], packed
    paged = {"block_table": pages, "seqused_k": used}
    yield "pages", [(2, 1, 4, 128), (32, 16, 1, 128)], paged
    scales = {"q_scale": lambda: torch.rand(4), "k_scale": lambda: torch.rand(2, 1)}
    yield "8 bits", [(2, 200, 4, 128), (2, 260, 2, 128)], {**scales, "v_scale": lambda: 0.5}


@pytest.mark.parametrize("with_out", [False, True], ids=["new", "out"])
@pytest.mark.parametrize("case", [*cases()], ids=lambda case: case[0])
def test_attention(launches, case, with_out):
    name, (queries, keys), options = case
    dtype = torch.float8_e4m3fn if name == "8 bits" else torch.float16

    def call():
        arrays = [half(*shape, dtype=dtype) for shape in (queries, keys, keys)]
        own = {option: make() for option, make in options.items()}
        if with_out:
            own["out"] = half(*queries, dtype=torch.bfloat16 if name == "8 bits" else dtype)
        return lambda: attention(*arrays, **own)

    for _ in range(2):
        launches(call())
    (plan,) = plans.values()
    assert plan.repeat is not None
    one = call()
    found = launches(one)
    plans.clear()
    assert found == launches(one) and len(found) >= 1
    assert found != launches(call())


@pytest.mark.parametrize("names", [(), ("alibi", "sinks", "bias")], ids=["plain", "arrays"])
@pytest.mark.parametrize("head", [64, 96])
def test_gradients(launches, head, names):
    def call():
        q, k, v = half(2, 200, 4, head), half(2, 260, 2, head), half(2, 260, 2, head)
        made = {"alibi": torch.rand(4), "sinks": torch.rand(4), "bias": torch.rand(200, 260)}
        own = {name: made[name] for name in names}
        if "bias" in own:
            own["grad_bias"] = torch.zeros(200, 260)
        given = (half(*q.shape), q, k, v, half(*q.shape), torch.rand(2, 4, 200))
        return lambda: attention_backward(*given, **own)

    for _ in range(2):
        launches(call())
    (plan,) = gradient_plans.values()
    assert plan.repeat is not None
    one = call()
    found = launches(one)
    gradient_plans.clear()
    assert found == launches(one) and len(found) == 3
    assert found != launches(call())
