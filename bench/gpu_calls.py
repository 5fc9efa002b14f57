"""The cost of a call that launches a kernel of one block, against the driver's own launch.

    python bench/gpu_calls.py        # part of bench/calls.py; needs a GPU and PyTorch

The functions get three PyTorch tensors. The peers are cuLaunchKernel through ctypes with arguments
made beforehand, and a native loop of cuLaunchKernelEx. All are called in turn, batch by batch, and
the GPU catches up after each batch; shown are medians of batches and their ratios.
"""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

BATCHES, CALLS, THREADS = 41, 300, 128  # a batch fits the driver's queue

# The same work as `add` below, of three pointers.
PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry bare(.param .u64 a, .param .u64 b, .param .u64 c)
{
  .reg .u32 %i;
  .reg .u64 %p<5>;
  .reg .f32 %f<4>;
  mov.u32 %i, %tid.x;
  mul.wide.u32 %p4, %i, 4;
  ld.param.u64 %p1, [a];
  ld.param.u64 %p2, [b];
  ld.param.u64 %p3, [c];
  add.s64 %p1, %p1, %p4;
  add.s64 %p2, %p2, %p4;
  add.s64 %p3, %p3, %p4;
  ld.global.f32 %f1, [%p1];
  ld.global.f32 %f2, [%p2];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%p3], %f3;
  ret;
}
"""

# Calls cuLaunchKernelEx `n` times.
LOOP = """
define void @launch_many(i64 %n, ptr %launch, ptr %config, ptr %function, ptr %args) {
start:
  br label %next

next:
  %i = phi i64 [ 0, %start ], [ %more, %next ]
  %result = call i32 %launch(ptr %config, ptr %function, ptr %args, ptr null)
  %more = add i64 %i, 1
  %again = icmp ult i64 %more, %n
  br i1 %again, label %next, label %done

done:
  ret void
}
"""


class Config(ctypes.Structure):
    """cuda.h: CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("smem", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


def missing() -> str | None:
    """Why there is nothing to measure here, or None."""
    from basedsl_cute.device import driver

    if not driver.is_available():
        return "no NVIDIA driver and GPU"
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    return None if torch.cuda.is_available() else "PyTorch sees no GPU"


def programs() -> dict[str, tuple[Callable[..., Any], Any]]:
    """Name -> function of three tensors, and the tensor with its results."""
    import torch

    import basedsl_cute as cute

    @cute.kernel
    def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        c[i] = a[i] + b[i]

    @cute.jit
    def launch(a, b, c):
        add(a, b, c).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])

    def tensors() -> list[Any]:
        return [torch.rand(THREADS, device="cuda") for _ in range(3)]

    compiled, undeclared, bare = tensors(), tensors(), tensors()
    kept, arguments = bare_arguments(bare)
    handle, many = bare_kernel(), native_loop()
    return {
        "compiled": (repeated(cute.compile(launch, *compiled), compiled), compiled),
        "undeclared": (repeated(launch, undeclared), undeclared),
        "bare, ctypes": (ctypes_launch(handle, arguments, kept), bare),
        "bare, native": (native_launch(many, handle, arguments, kept), bare),
    }


def repeated(function: Callable[..., Any], tensors: list[Any]) -> Callable[[int], float]:
    """Nanoseconds for so many calls."""
    a, b, c = tensors

    def run(calls: int) -> float:
        start = perf_counter_ns()
        for _ in range(calls):
            function(a, b, c)
        return perf_counter_ns() - start

    return run


def bare_arguments(tensors: list[Any]) -> tuple[Any, Any]:
    values = [ctypes.c_uint64(one.data_ptr()) for one in tensors]
    return values, (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))


@functools.cache
def bare_library() -> Any:
    from basedsl_cute.device import driver

    return driver.Library(PTX)


def bare_kernel() -> ctypes.c_void_p:
    return ctypes.c_void_p(bare_library().kernel("bare").handle)


def ctypes_launch(handle: Any, arguments: Any, kept: Any) -> Callable[[int], float]:
    from basedsl_cute.device import driver

    function = ctypes.CFUNCTYPE(ctypes.c_int)(driver.address_of("cuLaunchKernel"))
    sizes = [ctypes.c_uint(n) for n in (1, 1, 1, THREADS, 1, 1, 0)]
    stream = ctypes.c_void_p(0)

    def run(calls: int) -> float:
        x, y, z, across, down, deep, smem = sizes
        start = perf_counter_ns()
        for _ in range(calls):
            function(handle, x, y, z, across, down, deep, smem, stream, arguments, None)
        return perf_counter_ns() - start

    run.kept = kept  # type: ignore[attr-defined]
    return run


@functools.cache
def native_code() -> Any:
    from basedsl.objectstage import native

    return native.load_object(native.compile_llvmir(LOOP))


def native_loop() -> Any:
    types = [ctypes.c_int64, *[ctypes.c_void_p] * 4]
    return ctypes.CFUNCTYPE(None, *types)(native_code().address_of("launch_many"))


def native_launch(many: Any, handle: Any, arguments: Any, kept: Any) -> Callable[[int], float]:
    from basedsl_cute.device import driver

    config = Config(grid=(1, 1, 1), block=(THREADS, 1, 1))
    address = driver.address_of("cuLaunchKernelEx")

    def run(calls: int) -> float:
        start = perf_counter_ns()
        many(calls, address, ctypes.addressof(config), handle, ctypes.addressof(arguments))
        return perf_counter_ns() - start

    run.kept = kept  # type: ignore[attr-defined]
    return run


def measure(batches: int, calls: int = CALLS) -> dict[str, float]:
    """Median nanoseconds of each."""
    import torch

    chosen = programs()
    for run, (a, b, c) in chosen.values():
        c.zero_()
        torch.cuda.synchronize()
        run(5)
        torch.cuda.synchronize()
        assert torch.equal(c, a + b)
    taken: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(batches):
        for name, (run, _) in chosen.items():
            taken[name].append(run(calls) / calls)
            torch.cuda.synchronize()
    return {name: statistics.median(times) for name, times in taken.items()}


def report(batches: int) -> None:
    """Print the table, or why there is none."""
    reason = missing()
    if reason is not None:
        print(f"launches on a GPU: not measured, {reason}")
        return
    os.environ.pop("CUTE_DSL_ARCH", None)
    medians = measure(batches)
    through_ctypes, in_native = medians["bare, ctypes"], medians["bare, native"]
    print(f"{'launch, three tensors':<28} {'ns':>8} {'/ ctypes':>9} {'/ native':>9}")
    for name, nanoseconds in medians.items():
        ratios = f"{nanoseconds / through_ctypes:9.2f} {nanoseconds / in_native:9.2f}"
        print(f"{name:<28} {nanoseconds:8.0f} {ratios}")


if __name__ == "__main__":
    report(BATCHES)
