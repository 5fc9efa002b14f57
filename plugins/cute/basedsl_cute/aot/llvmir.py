"""LLVM IR of an exported object besides its host code: the kernels, and their loading and launch.

The functions that compiled host code calls (`lowering.host.launch_abi`) are defined here by calls
of the CUDA driver, with names that begin with the exported function's prefix.
"""

from __future__ import annotations

import math

from basedsl_cute.device import driver
from basedsl_cute.device.gpu_launcher import launch_llvmir
from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.hardware.targets import PORTABLE_CLUSTER
from basedsl_cute.hardware.tensor_map_format import ENCODERS
from basedsl_cute.lowering.host.launch_abi import LAUNCH_SYMBOL, LAUNCHER_SYMBOL, LaunchTable

# cuda.h: CUdevice_attribute MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CUfunction_attribute
# SHARED_SIZE_BYTES, CUresult INVALID_VALUE and ASSERT.
_SMEM_OPTIN, _STATIC_SMEM, _INVALID_VALUE, _ASSERTION = 97, 1, 1, 710
# What compiled host code calls, and `support` defines with the prefix.
PROVIDED = (LAUNCH_SYMBOL, LAUNCHER_SYMBOL, *ENCODERS)


def support(prefix: str, image: bytes, table: LaunchTable) -> str:
    """LLVM IR of what the host code needs: image, launcher, loading."""
    count = len(table.kernels)
    limits = LaunchLimits()
    grid = ", ".join(f"i64 {n}" for n in limits.grid)
    block = ", ".join(f"i64 {n}" for n in limits.block)
    names = [
        f"@{prefix}_name_{i} = private constant {_bytes(kernel.name.encode() + bytes(1))}"
        for i, kernel in enumerate(table.kernels)
    ]
    launch = launch_llvmir().replace("@basedsl_gpu_launch(", f"@{prefix}_{LAUNCH_SYMBOL}(")
    launch = launch.replace("define i32", "define internal i32")
    return "\n".join(
        [
            f"@{prefix}_image = private constant {_bytes(image)}, align 64",
            *names,
            f"@{prefix}_rows = internal global [{max(count, 1)} x [2 x i64]] zeroinitializer",
            f"@{prefix}_error = internal global i32 0",
            f"@{prefix}_{LAUNCHER_SYMBOL} = internal global "
            "{ ptr, ptr, ptr, [3 x i64], [3 x i64], i64 } "
            f"{{ ptr @cuLaunchKernelEx, ptr @{prefix}_failed, ptr @{prefix}_rows, "
            f"[3 x i64] [{grid}], [3 x i64] [{block}], i64 {limits.threads} }}",
            launch,
            _failures(prefix),
            *(_encoder(prefix, name) for name in ENCODERS),
            _loading(prefix, table),
        ]
    )


def _failures(prefix: str) -> str:
    error = f"@{prefix}_error"
    return f"""
define void @{prefix}_basedsl_begin() {{
  store i32 0, ptr {error}
  ret void
}}

define i32 @{prefix}_basedsl_status() {{
  %code = load i32, ptr {error}
  ret i32 %code
}}

define internal i32 @{prefix}_failed(ptr %launcher, ptr %config, ptr %args, i32 %code) {{
  %refused = icmp slt i32 %code, 0
  %shown = select i1 %refused, i32 {_INVALID_VALUE}, i32 %code
  store i32 %shown, ptr {error}
  ret i32 0
}}

define internal void @{prefix}_basedsl_assertion_failed(ptr %where) {{
  %known = load i32, ptr {error}
  %first = icmp eq i32 %known, 0
  %shown = select i1 %first, i32 {_ASSERTION}, i32 %known
  store i32 %shown, ptr {error}
  ret void
}}
"""


def _encoder(prefix: str, name: str) -> str:
    function, kinds = ENCODERS[name][0], ENCODERS[name][1].split()
    arguments = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    return f"""
declare i32 @{function}({", ".join(kinds)})

define internal i32 @{prefix}_{name}({arguments}) {{
  %result = call i32 @{function}({arguments})
  ret i32 %result
}}
"""


def _loading(prefix: str, table: LaunchTable) -> str:
    """LLVM IR of `_Kernel_Module_Load` and `_Unload`: library, kernels and their attributes."""
    lines = [
        "declare i32 @cuLaunchKernelEx(ptr, ptr, ptr, ptr)",
        "declare i32 @cuLibraryLoadData(ptr, ptr, ptr, ptr, i32, ptr, ptr, i32)",
        "declare i32 @cuLibraryUnload(ptr)",
        "declare i32 @cuLibraryGetKernel(ptr, ptr, ptr)",
        "declare i32 @cuCtxGetDevice(ptr)",
        "declare i32 @cuDeviceGetAttribute(ptr, i32, i32)",
        "declare i32 @cuKernelGetAttribute(ptr, i32, ptr, i32)",
        "declare i32 @cuKernelSetAttribute(i32, i32, ptr, i32)",
        f"define i32 @{prefix}_Kernel_Module_Load(ptr %module) {{",
        "  %device = alloca i32",
        "  %most = alloca i32",
        "  %static = alloca i32",
    ]
    step = 0

    def call(text: str) -> None:
        nonlocal step
        lines.append(f"  %r{step} = call i32 {text}")
        lines.append(f"  %ok{step} = icmp eq i32 %r{step}, 0")
        lines.append(f"  br i1 %ok{step}, label %go{step}, label %bad{step}")
        lines.append(f"bad{step}:")
        lines.append(f"  ret i32 %r{step}")
        lines.append(f"go{step}:")
        step += 1

    call(
        f"@cuLibraryLoadData(ptr %module, ptr @{prefix}_image, ptr null, ptr null, i32 0, "
        "ptr null, ptr null, i32 0)"
    )
    lines.append("  %library = load ptr, ptr %module")
    call("@cuCtxGetDevice(ptr %device)")
    lines.append("  %number = load i32, ptr %device")
    call(f"@cuDeviceGetAttribute(ptr %most, i32 {_SMEM_OPTIN}, i32 %number)")
    lines.append("  %limit = load i32, ptr %most")
    for i, kernel in enumerate(table.kernels):
        lines.append(f"  %row{i} = getelementptr [2 x i64], ptr @{prefix}_rows, i64 {i}")
        lines.append(f"  %room{i} = getelementptr i64, ptr %row{i}, i64 1")
        call(f"@cuLibraryGetKernel(ptr %row{i}, ptr %library, ptr @{prefix}_name_{i})")
        lines.append(f"  %k{i} = load ptr, ptr %row{i}")
        call(f"@cuKernelGetAttribute(ptr %static, i32 {_STATIC_SMEM}, ptr %k{i}, i32 %number)")
        lines.append(f"  %static{i} = load i32, ptr %static")
        lines.append(f"  %left{i} = sub i32 %limit, %static{i}")
        lines.append(f"  %wide{i} = sext i32 %left{i} to i64")
        lines.append(f"  store i64 %wide{i}, ptr %room{i}")
        wanted = []
        if kernel.uses_dynamic_smem:
            wanted.append((driver.MAX_DYNAMIC_SMEM, f"%left{i}"))
        if kernel.cluster is not None and math.prod(kernel.cluster) > PORTABLE_CLUSTER:
            wanted.append((driver.NON_PORTABLE_CLUSTER, "1"))
        if kernel.smem_carveout >= 0:
            wanted.append((driver.SMEM_CARVEOUT, str(kernel.smem_carveout)))
        for which, value in wanted:
            call(f"@cuKernelSetAttribute(i32 {which}, i32 {value}, ptr %k{i}, i32 %number)")
    lines += [
        "  ret i32 0",
        "}",
        f"define i32 @{prefix}_Kernel_Module_Unload(ptr %module) {{",
        "  %library = load ptr, ptr %module",
        "  %r = call i32 @cuLibraryUnload(ptr %library)",
        "  store ptr null, ptr %module",
        "  ret i32 %r",
        "}",
    ]
    return "\n".join(lines)


def _bytes(data: bytes) -> str:
    """A constant array of bytes in LLVM IR."""
    return f'[{len(data)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'
