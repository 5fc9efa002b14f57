"""The launcher of kernels on a GPU from native host code: the function behind `basedsl_launch`.

A launch runs no Python. `basedsl_gpu_launch`, compiled once per process from the LLVM IR below,
checks the launch against the device's limits, fills a CUlaunchConfig and calls cuLaunchKernelEx.
Only a failure calls back into Python, which makes the error, or gives a thread without a CUDA
context one and has the launch repeated.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

from basedsl import DSLRuntimeError, LoadedObject, compile_kept_llvmir, load_object
from basedsl_cute.device import driver
from basedsl_cute.device.launch_checks import (
    LAUNCH_SYMBOL,
    LAUNCHER_SYMBOL,
    PREFERRED_CLUSTER,
    LaunchConfig,
    LaunchParameters,
    LaunchTable,
    Symbols,
    report_failure,
    unlaunchable,
)
from basedsl_cute.device.tensor_map import driver_encoders
from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.hardware.targets import PORTABLE_CLUSTER
from basedsl_cute.hardware.tensor_map_format import ENCODERS

COOPERATIVE_LAUNCH_TOO_LARGE = 720  # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
# Results of a launch in a thread without a context: CUDA_ERROR_NOT_INITIALIZED, INVALID_CONTEXT,
# INVALID_HANDLE, CONTEXT_IS_DESTROYED.
NO_CONTEXT = (3, 201, 400, 709)
_REFUSED = -1  # outside of the limits, so the driver is not called


class KernelRow(ctypes.Structure):
    """The entry of a kernel in the launcher: its CUkernel, and its most dynamic shared memory."""

    _fields_ = (("handle", ctypes.c_uint64), ("max_smem", ctypes.c_int64))


class Launcher(ctypes.Structure):
    """The structure that the symbol `basedsl_launcher` points to."""

    _fields_ = (
        ("launch", ctypes.c_void_p),  # cuLaunchKernelEx
        ("failed", ctypes.c_void_p),  # i32 (launcher, config, args, CUresult): nonzero tries again
        ("kernels", ctypes.POINTER(KernelRow)),
        ("max_grid", ctypes.c_int64 * 3),
        ("max_block", ctypes.c_int64 * 3),
        ("max_threads", ctypes.c_int64),
    )


_FailedType = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.POINTER(LaunchConfig),
    ctypes.c_void_p,
    ctypes.c_int32,
)


def gpu_launcher(image: bytes | str, table: LaunchTable) -> Symbols:
    """Load machine code or PTX, and return the symbols that its host code is linked with.

    The returned mapping owns the loaded code. Raises DSLRuntimeError without a driver.
    """
    library = driver.Library(image)
    here = driver.device(driver.current_device())
    kernels = [library.kernel(entry.name) for entry in table.kernels]
    rows = (KernelRow * max(1, len(kernels)))()
    limits = []
    for row, kernel, entry in zip(rows, kernels, table.kernels, strict=False):
        most = here.smem_per_block - kernel.attribute("static_smem")
        row.handle, row.max_smem = kernel.handle, most
        limits.append(LaunchLimits(here.max_grid, here.max_block, here.max_threads_per_block, most))
        if entry.uses_dynamic_smem:
            _allow_smem(kernel, most)
        cluster = entry.preferred_cluster or entry.cluster
        if cluster is not None and math.prod(cluster) > PORTABLE_CLUSTER:
            kernel.set_attribute(driver.NON_PORTABLE_CLUSTER, 1, here.number)
        if entry.smem_carveout >= 0:
            kernel.set_attribute(driver.SMEM_CARVEOUT, entry.smem_carveout, here.number)

    def failed(_: int, config: Any, args: int, code: int) -> int:
        try:
            index = config.contents.kernel
            launch = LaunchParameters.read(config.contents, args, table)
            if code in NO_CONTEXT and driver.give_context():
                return 1
            if code == INVALID_VALUE and _allowed_now(kernels[index], rows[index].max_smem):
                return 1
            report_failure(_failure(launch, limits[index], code))
        except BaseException as error:
            report_failure(error)
        return 0

    callback = _FailedType(failed)
    launcher = Launcher(
        driver.address_of("cuLaunchKernelEx"),
        ctypes.cast(callback, ctypes.c_void_p).value,
        rows,
        here.max_grid,
        here.max_block,
        here.max_threads_per_block,
    )
    code = _native_code()
    symbols = Symbols(
        {
            LAUNCH_SYMBOL: code.address_of("basedsl_gpu_launch"),
            LAUNCHER_SYMBOL: ctypes.addressof(launcher),
            **_encoders(code),
        }
    )
    symbols.keep = (launcher, callback, rows, library, code)
    return symbols


def encoder() -> Symbols:
    """The symbols of host code that makes tensor maps but launches no kernel."""
    code = _native_code()
    symbols = Symbols(_encoders(code))
    symbols.keep = (code,)
    return symbols


def _encoders(code: LoadedObject) -> dict[str, int]:
    return {name: code.address_of(f"{name}_on_gpu") for name in ENCODERS}


_allowed: set[tuple[int, int]] = set()


def _allow_smem(kernel: driver.Kernel, most: int) -> None:
    """Allow a kernel more dynamic shared memory than the default 48 KiB on the current device."""
    number = driver.current_device()
    kernel.set_attribute(driver.MAX_DYNAMIC_SMEM, most, number)
    _allowed.add((kernel.handle, number))


def _allowed_now(kernel: driver.Kernel, most: int) -> bool:
    """Allow the kernel its shared memory on the current device; False if it had been allowed."""
    if (kernel.handle, driver.current_device()) in _allowed:
        return False
    _allow_smem(kernel, most)
    return True


def _failure(launch: LaunchParameters, limits: LaunchLimits, code: int) -> DSLRuntimeError:
    wrong = unlaunchable(launch, limits)
    if wrong is not None:
        return wrong
    name, meaning = driver.describe_error(code)
    if code == COOPERATIVE_LAUNCH_TOO_LARGE:
        meaning = "a cooperative launch has more blocks than run at once on this device"
    return driver.DSLCudaRuntimeError(
        f"launch of {launch.kernel.name} failed: {name}, {meaning}",
        code,
        name,
        notes=(
            (
                f"grid={launch.grid}, block={launch.block}, cluster={launch.cluster}, "
                f"smem={launch.smem}",
                None,
            ),
        ),
    )


@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)  # type: ignore[untyped-decorator]
def _encode_again(code: int) -> int:
    """Return 1 if an encoder that returned `code` may succeed now: its thread got a context."""
    try:
        return int(code in NO_CONTEXT and driver.give_context())
    except DSLRuntimeError:
        return 0  # the result of the encoder is reported


_ENCODE_AGAIN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(_encode_again)


@functools.cache
def _native_code() -> LoadedObject:
    again = ctypes.cast(_ENCODE_AGAIN, ctypes.c_void_p).value or 0
    symbols = {f"{name}_by_driver": address for name, address in driver_encoders().items()}
    return load_object(
        compile_kept_llvmir(launch_llvmir() + _encode_llvmir()),
        {**symbols, "basedsl_encode_again": again},
    )


def launch_llvmir() -> str:
    """LLVM IR of the function `i32 basedsl_gpu_launch(ptr launcher, ptr config, ptr args)`.

    Offsets are those of `Launcher` and `LaunchConfig` above, and of cuda.h:

        CUlaunchConfig     u32 grid[3], block[3], smem; at 32 stream, 40 attrs; at 48 u32 count
        CUlaunchAttribute  u32 id; at 8 the value: u32 x, y, z of a cluster, or an int; 72 bytes
    """
    lines: list[str] = []
    checks: list[str] = []

    def load(name: str, base: str, offset: int) -> str:
        lines.append(f"  %{name}.at = getelementptr i8, ptr %{base}, i64 {offset}")
        lines.append(f"  %{name} = load i64, ptr %{name}.at")
        return f"%{name}"

    def check(name: str, value: str, limit: str) -> None:
        lines.append(f"  %{name}.ok = icmp ult i64 {value}, {limit}")
        checks.append(f"%{name}.ok")

    for field, most in (("grid", Launcher.max_grid), ("block", Launcher.max_block)):
        for i, axis in enumerate("xyz"):
            name = f"{field}.{axis}"
            value = load(name, "config", getattr(LaunchConfig, field).offset + 8 * i)
            limit = load(f"{name}.max", "launcher", most.offset + 8 * i)
            # From 1 to the limit, as unsigned numbers: negative ones are large.
            lines.append(f"  %{name}.less = sub i64 {value}, 1")
            check(name, f"%{name}.less", limit)
    lines.append("  %threads.xy = mul i64 %block.x, %block.y")
    lines.append("  %threads = mul i64 %threads.xy, %block.z")
    lines.append("  %threads.less = sub i64 %threads, 1")
    check("threads", "%threads.less", load("threads.max", "launcher", Launcher.max_threads.offset))
    index = load("kernel", "config", LaunchConfig.kernel.offset)
    lines.append(f"  %rows.at = getelementptr i8, ptr %launcher, i64 {Launcher.kernels.offset}")
    lines.append("  %rows = load ptr, ptr %rows.at")
    lines.append(f"  %row = getelementptr [2 x i64], ptr %rows, i64 {index}")
    load("handle", "row", 0)
    most_smem = load("smem.max", "row", 8)
    smem = load("smem", "config", LaunchConfig.smem.offset)
    lines.append(f"  %smem.over = icmp ugt i64 {smem}, {most_smem}")
    lines.append("  %smem.ok = xor i1 %smem.over, true")
    checks.append("%smem.ok")
    load("stream", "config", LaunchConfig.stream.offset)
    load("flags", "config", LaunchConfig.flags.offset)
    for name in ("completion", "programmatic"):
        load(f"{name}_event", "config", getattr(LaunchConfig, f"{name}_event").offset)
        load(f"{name}_flags", "config", getattr(LaunchConfig, f"{name}_flags").offset)
    for i, axis in enumerate("xyz"):
        load(f"cluster.{axis}", "config", LaunchConfig.cluster.offset + 8 * i)
    lines.append("  %ok.0 = and i1 true, true")
    for i, one in enumerate(checks):
        lines.append(f"  %ok.{i + 1} = and i1 %ok.{i}, {one}")
    return _TEMPLATE.format(
        checks="\n".join(lines),
        ok=f"%ok.{len(checks)}",
        fill="\n".join(_fill()),
        attributes="\n".join(_attributes()),
        launch=Launcher.launch.offset,
        failed=Launcher.failed.offset,
        refused=_REFUSED,
    )


def _encode_llvmir() -> str:
    """LLVM IR of the driver's encoders, each repeated with a context."""
    encoders = (_encoder_llvmir(name, kinds) for name, (_, kinds) in ENCODERS.items())
    return "declare i32 @basedsl_encode_again(i32)\n" + "".join(encoders)


def _encoder_llvmir(name: str, kinds: str) -> str:
    arguments = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds.split()))
    return f"""
declare i32 @{name}_by_driver({", ".join(kinds.split())})

define i32 @{name}_on_gpu({arguments}) {{
  br label %try

try:
  %result = call i32 @{name}_by_driver({arguments})
  %good = icmp eq i32 %result, 0
  br i1 %good, label %done, label %bad

bad:
  %again = call i32 @basedsl_encode_again(i32 %result)
  %retry = icmp ne i32 %again, 0
  br i1 %retry, label %try, label %done

done:
  ret i32 %result
}}
"""


def _fill() -> list[str]:
    """LLVM IR of the stores into the CUlaunchConfig."""
    lines = []
    values = ["grid.x", "grid.y", "grid.z", "block.x", "block.y", "block.z", "smem"]
    for i, name in enumerate(values):
        lines.append(f"  %{name}.32 = trunc i64 %{name} to i32")
        lines.append(f"  %into.{i} = getelementptr i8, ptr %cu, i64 {4 * i}")
        lines.append(f"  store i32 %{name}.32, ptr %into.{i}")
    return lines


def _attributes() -> list[str]:
    """LLVM IR of the stores into the CUlaunchAttributes, of which only requested ones count."""
    lines = [
        "  %cluster.any = icmp ne i64 %cluster.x, 0",
        "  %flag.1 = and i64 %flags, 1",
        "  %coop.any = icmp ne i64 %flag.1, 0",
        "  %flag.2 = and i64 %flags, 2",
        "  %pdl.any = icmp ne i64 %flag.2, 0",
        f"  %preferred.all = lshr i64 %flags, {PREFERRED_CLUSTER}",
        "  %preferred.any = icmp ne i64 %preferred.all, 0",
        "  %completion.any = icmp ne i64 %completion_event, 0",
        "  %programmatic.any = icmp ne i64 %programmatic_event, 0",
        "  %n.0 = add i64 0, 0",
    ]
    for i, axis in enumerate("xyz"):
        lines.append(f"  %cluster.{axis}.32 = trunc i64 %cluster.{axis} to i32")
        lines.append(f"  %preferred.{axis}.up = lshr i64 %preferred.all, {8 * i}")
        lines.append(f"  %preferred.{axis}.8 = and i64 %preferred.{axis}.up, 255")
        lines.append(f"  %preferred.{axis}.32 = trunc i64 %preferred.{axis}.8 to i32")
    for i, (name, number, values) in enumerate(_ATTRIBUTES):
        # The next attribute overwrites one that is not requested; the last is not counted.
        lines.append(f"  %{name}.attr = getelementptr [72 x i8], ptr %attrs, i64 %n.{i}")
        lines.append(f"  store i32 {number}, ptr %{name}.attr")
        offset = 8
        for k, value in enumerate(values):
            to = f"%{name}.to.{k}"
            lines.append(f"  {to} = getelementptr i8, ptr %{name}.attr, i64 {offset}")
            lines.append(f"  store {value}, ptr {to}")
            offset += 8 if value.startswith("i64") else 4
        lines.append(f"  %{name}.one = zext i1 %{name}.any to i64")
        lines.append(f"  %n.{i + 1} = add i64 %n.{i}, %{name}.one")
    return lines


# cuda.h, CUlaunchAttributeID: CLUSTER_DIMENSION, COOPERATIVE, PROGRAMMATIC_STREAM_SERIALIZATION,
# LAUNCH_COMPLETION_EVENT, PROGRAMMATIC_EVENT, PREFERRED_CLUSTER_DIMENSION, and
# CUlaunchAttributeValue: x, y, z; one int; an event, its flags and, of PROGRAMMATIC_EVENT, whether
# the start of a block triggers it.
_ATTRIBUTES = (
    ("cluster", 4, tuple(f"i32 %cluster.{axis}.32" for axis in "xyz")),
    ("coop", 2, ("i32 1", "i32 0", "i32 0")),
    ("pdl", 6, ("i32 1", "i32 0", "i32 0")),
    ("completion", 12, ("i64 %completion_event", "i64 %completion_flags")),
    ("programmatic", 7, ("i64 %programmatic_event", "i64 %programmatic_flags")),
    ("preferred", 11, tuple(f"i32 %preferred.{axis}.32" for axis in "xyz")),
)

_TEMPLATE = """
define i32 @basedsl_gpu_launch(ptr %launcher, ptr %config, ptr %args) {{
  %cu = alloca [56 x i8], align 8
  %attrs = alloca [432 x i8], align 8
{checks}
  %failed.at = getelementptr i8, ptr %launcher, i64 {failed}
  %failed = load ptr, ptr %failed.at
  br i1 {ok}, label %start, label %refuse

refuse:
  %ignored = call i32 %failed(ptr %launcher, ptr %config, ptr %args, i32 {refused})
  ret i32 {refused}

start:
{fill}
  %stream.to = getelementptr i8, ptr %cu, i64 32
  store i64 %stream, ptr %stream.to
  %attrs.to = getelementptr i8, ptr %cu, i64 40
  store ptr %attrs, ptr %attrs.to
{attributes}
  %n.32 = trunc i64 %n.6 to i32
  %n.to = getelementptr i8, ptr %cu, i64 48
  store i32 %n.32, ptr %n.to
  %launch.at = getelementptr i8, ptr %launcher, i64 {launch}
  %launch = load ptr, ptr %launch.at
  %function = inttoptr i64 %handle to ptr
  br label %try

try:
  %result = call i32 %launch(ptr %cu, ptr %function, ptr %args, ptr null)
  %good = icmp eq i32 %result, 0
  br i1 %good, label %done, label %bad

bad:
  %again = call i32 %failed(ptr %launcher, ptr %config, ptr %args, i32 %result)
  %retry = icmp ne i32 %again, 0
  br i1 %retry, label %try, label %done

done:
  ret i32 %result
}}
"""
