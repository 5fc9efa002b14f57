"""LLVM IR of an exported object besides its host code: the kernels, and their loading and launch.

The functions that compiled host code calls (`lowering.host.launch_abi`) are defined here by calls
of the CUDA driver, with names that begin with the exported function's prefix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from basedsl_cute.aot.interface import LLVM_TYPES, REFUSED, CParameter, wrapper_name
from basedsl_cute.device import driver
from basedsl_cute.device.gpu_launcher import launch_llvmir
from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.hardware.targets import PORTABLE_CLUSTER
from basedsl_cute.hardware.tensor_map_format import ENCODE_SYMBOL
from basedsl_cute.lowering.host.launch_abi import LAUNCH_SYMBOL, LAUNCHER_SYMBOL, LaunchTable

# cuda.h: CUdevice_attribute MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CUfunction_attribute
# SHARED_SIZE_BYTES, CUresult INVALID_VALUE and ASSERT.
_SMEM_OPTIN, _STATIC_SMEM, _INVALID_VALUE, _ASSERTION = 97, 1, 1, 710
_ASSERTION_SYMBOLS = ("basedsl_assertion_failed", "basedsl_assertion_values")


def renamed_host(text: str, prefix: str) -> str:
    """The host's LLVM IR with `prefix` on every global name, and without declarations of those that
    `support` defines.
    """
    own = set(re.findall(r'^define [^@]*@"?([\w.$-]+)"?\(', text, re.MULTILINE))
    own |= {LAUNCH_SYMBOL, LAUNCHER_SYMBOL, ENCODE_SYMBOL, *_ASSERTION_SYMBOLS}
    gone = tuple(f"@{name}" for name in (LAUNCH_SYMBOL, ENCODE_SYMBOL, *_ASSERTION_SYMBOLS))
    lines = [
        line
        for line in text.split("\n")
        if not (line.startswith("declare") and re.search(rf"({'|'.join(gone)})\(", line))
        and not line.startswith(f"@{LAUNCHER_SYMBOL} =")
    ]
    names = "|".join(sorted(map(re.escape, own), key=len, reverse=True))
    return re.sub(rf"@({names})\b(?![\w.$-])", rf"@{prefix}_\1", "\n".join(lines))


def support(prefix: str, image: bytes, table: LaunchTable, entry: str, meta: bytes) -> str:
    """LLVM IR of everything but the host code and its wrapper: image, launcher, loading."""
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
            f"@{prefix}_basedsl_meta = constant {_bytes(meta)}",
            f"@{prefix}_basedsl_meta_size = constant i64 {len(meta)}",
            *names,
            f"@{prefix}_rows = internal global [{max(count, 1)} x [2 x i64]] zeroinitializer",
            f"@{prefix}_error = global i32 0",
            f"@{prefix}_{LAUNCHER_SYMBOL} = internal global "
            "{ ptr, ptr, ptr, [3 x i64], [3 x i64], i64 } "
            f"{{ ptr @cuLaunchKernelEx, ptr @{prefix}_failed, ptr @{prefix}_rows, "
            f"[3 x i64] [{grid}], [3 x i64] [{block}], i64 {limits.threads} }}",
            launch,
            _failures(prefix),
            _encoder(prefix),
            _loading(prefix, table),
            f"define void @{prefix}_basedsl_entry(ptr %slots) {{",
            f"  call void @{prefix}_{entry}(ptr %slots)",
            "  ret void",
            "}",
        ]
    )


def _failures(prefix: str) -> str:
    error = f"@{prefix}_error"
    return f"""
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


def _encoder(prefix: str) -> str:
    kinds = "ptr i32 i32 i64 ptr ptr ptr ptr i32 i32 i32 i32".split()
    arguments = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    return f"""
declare i32 @cuTensorMapEncodeTiled({", ".join(kinds)})

define internal i32 @{prefix}_{ENCODE_SYMBOL}({arguments}) {{
  %result = call i32 @cuTensorMapEncodeTiled({arguments})
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


def wrapper(prefix: str, parameters: Sequence[CParameter], results: Sequence[str]) -> str:
    """LLVM IR of the C function: it fills the slots of `objectstage.entry_thunk`, calls the host
    code and stores the results.
    """
    declared = ["ptr %module"]
    checks = _Checks()
    lines: list[str] = []
    slot = 0

    def store(kind: str, value: str) -> None:
        nonlocal slot
        lines.append(f"  %slot{slot} = getelementptr i64, ptr %slots, i64 {slot}")
        lines.append(f"  store {kind} {value}, ptr %slot{slot}")
        slot += 1

    for i, one in enumerate(parameters):
        if one.kind == "tensor":
            declared.append(f"ptr %p{i}")
            checks.tensor(f"%p{i}", one)
            offset = 0
            for j, code in enumerate(one.storage):
                kind = LLVM_TYPES[code]
                lines.append(f"  %p{i}.{j}.at = getelementptr i8, ptr %p{i}, i64 {offset}")
                lines.append(f"  %p{i}.{j} = load {kind}, ptr %p{i}.{j}.at")
                store(kind, f"%p{i}.{j}")
                offset += 8 if kind == "i64" else 4
        elif one.kind == "number":
            kind = LLVM_TYPES[one.storage[0]]
            declared.append(f"{kind} %p{i}")
            store(kind, f"%p{i}")
        else:
            if one.kind == "pointer" and one.align > 1:
                checks.aligned(f"%p{i}", one.align)
            declared.append(f"ptr %p{i}")
            store("ptr", f"%p{i}")
    out = []
    for i, code in enumerate(results):
        kind = LLVM_TYPES[code]
        declared.append(f"ptr %out{i}")
        checks.not_null(f"%out{i}")
        out.append(f"  %r{i}.at = getelementptr i64, ptr %slots, i64 {slot + i}")
        out.append(f"  %r{i} = load {kind}, ptr %r{i}.at")
        out.append(f"  store {kind} %r{i}, ptr %out{i}")
    return "\n".join(
        [
            f"define i32 @{wrapper_name(prefix)}({', '.join(declared)}) {{",
            f"  %slots = alloca [{max(slot + len(results), 1)} x i64], align 16",
            *checks.lines,
            f"  store i32 0, ptr @{prefix}_error",
            *lines,
            f"  call void @{prefix}_basedsl_entry(ptr %slots)",
            f"  %error = load i32, ptr @{prefix}_error",
            *out,
            "  ret i32 %error",
            *(
                line
                for name, value in REFUSED.items()
                if name in checks.used
                for line in (f"refused.{name}:", f"  ret i32 {value}")
            ),
            "}",
        ]
    )


class _Checks:
    """LLVM IR that leaves the function with a code of `REFUSED` where an input is wrong."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.used: set[str] = set()
        self._count = 0

    def tensor(self, name: str, one: CParameter) -> None:
        """Check a tensor's struct: its address, extents and strides."""
        self.not_null(name)
        data = self._let(f"load ptr, ptr {name}")
        values = []
        offset = 8
        for code in one.storage[1:]:
            kind = LLVM_TYPES[code]
            at = self._let(f"getelementptr i8, ptr {name}, i64 {offset}")
            values.append((kind, self._let(f"load {kind}, ptr {at}")))
            offset += 8 if kind == "i64" else 4
        is_empty = "true" if one.is_empty else "false"
        for i, (kind, value) in enumerate(values):
            field = "EXTENT" if i < one.extents else "STRIDE"
            if field == "EXTENT":
                self._refuse(self._let(f"icmp slt {kind} {value}, 0"), field)
                zero = self._let(f"icmp eq {kind} {value}, 0")
                is_empty = self._let(f"or i1 {is_empty}, {zero}")
            if one.divisors[i] > 1:
                rest = self._let(f"srem {kind} {value}, {one.divisors[i]}")
                self._refuse(self._let(f"icmp ne {kind} {rest}, 0"), field)
        is_null = self._let(f"icmp eq ptr {data}, null")
        has_elements = self._let(f"xor i1 {is_empty}, true")
        self._refuse(self._let(f"and i1 {is_null}, {has_elements}"), "NULL")
        self.aligned(data, one.align)

    def not_null(self, name: str) -> None:
        """Refuse a null pointer."""
        self._refuse(self._let(f"icmp eq ptr {name}, null"), "NULL")

    def aligned(self, name: str, align: int) -> None:
        """Refuse an address that is no multiple of `align` bytes."""
        if align > 1:
            number = self._let(f"ptrtoint ptr {name} to i64")
            rest = self._let(f"urem i64 {number}, {align}")
            self._refuse(self._let(f"icmp ne i64 {rest}, 0"), "ALIGNMENT")

    def _let(self, text: str) -> str:
        self._count += 1
        self.lines.append(f"  %check{self._count} = {text}")
        return f"%check{self._count}"

    def _refuse(self, condition: str, why: str) -> None:
        self._count += 1
        self.used.add(why)
        label = f"good{self._count}"
        self.lines.append(f"  br i1 {condition}, label %refused.{why}, label %{label}")
        self.lines.append(f"{label}:")


def _bytes(data: bytes) -> str:
    """A constant array of bytes in LLVM IR."""
    return f'[{len(data)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'
