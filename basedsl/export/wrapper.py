"""LLVM IR of the C function of an export: checks, the slots of the entry, the results."""

from __future__ import annotations

from collections.abc import Iterator

from basedsl.binding.c_interface import CParameter
from basedsl.export.header import REFUSED, CInterface

LLVM_TYPES = {
    "b": "i8", "B": "i8", "h": "i16", "H": "i16", "e": "i16", "i": "i32", "I": "i32", "q": "i64",
    "Q": "i64", "f": "float", "d": "double",
}  # fmt: skip
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def wrapper(interface: CInterface) -> str:
    """Return LLVM IR of the C function: it fills the slots of `objectstage.entry_thunk`, calls
    PREFIX_basedsl_entry between PREFIX_basedsl_begin and PREFIX_basedsl_status, and stores the
    results.
    """
    prefix = interface.prefix
    declared = ["ptr %module"] if interface.module else []
    checks = _Checks()
    lines: list[str] = []
    slot = 0

    def store(kind: str, value: str) -> None:
        nonlocal slot
        lines.append(f"  %slot{slot} = getelementptr i64, ptr %slots, i64 {slot}")
        lines.append(f"  store {kind} {value}, ptr %slot{slot}")
        slot += 1

    for i, one in enumerate(interface.parameters):
        if one.is_struct:
            declared.append(f"ptr %p{i}")
            checks.struct(f"%p{i}", one)
            for j, (kind, offset) in enumerate(_fields(one)):
                lines.append(f"  %p{i}.{j}.at = getelementptr i8, ptr %p{i}, i64 {offset}")
                lines.append(f"  %p{i}.{j} = load {kind}, ptr %p{i}.{j}.at")
                store(kind, f"%p{i}.{j}")
        elif one.kind == "number":
            kind = LLVM_TYPES[one.storage[0]]
            declared.append(f"{kind} %p{i}")
            store(kind, f"%p{i}")
        else:
            if one.kind == "pointer":
                checks.aligned(f"%p{i}", one.align)
            declared.append(f"ptr %p{i}")
            store("ptr", f"%p{i}")
    out = []
    for i, one in enumerate(interface.results):
        declared.append(f"ptr %out{i}")
        checks.not_null(f"%out{i}")
        for j, (kind, offset) in enumerate(_fields(one)):
            out.append(f"  %r{i}.{j}.at = getelementptr i64, ptr %slots, i64 {slot}")
            out.append(f"  %r{i}.{j} = load {kind}, ptr %r{i}.{j}.at")
            out.append(f"  %out{i}.{j} = getelementptr i8, ptr %out{i}, i64 {offset}")
            out.append(f"  store {kind} %r{i}.{j}, ptr %out{i}.{j}")
            slot += 1
    size = max(slot, 1)
    return "\n".join(
        [
            f"define i32 @{interface.function}({', '.join(declared)}) {{",
            f"  %slots = alloca [{size} x i64], align 16",
            *checks.lines,
            f"  call void @{prefix}_basedsl_begin()",
            *lines,
            f"  call void @{prefix}_basedsl_entry(ptr %slots)",
            f"  %error = call i32 @{prefix}_basedsl_status()",
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


def _fields(one: CParameter) -> Iterator[tuple[str, int]]:
    """The LLVM type and the byte offset of each field of a parameter's struct, as C lays it out."""
    offset = 0
    for code in one.storage:
        kind = LLVM_TYPES[code]
        size = _BYTES[kind]
        offset = -(-offset // size) * size
        yield kind, offset
        offset += size


class _Checks:
    """LLVM IR that leaves the function with a code of `REFUSED` where an input is wrong."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.used: set[str] = set()
        self._count = 0

    def struct(self, name: str, one: CParameter) -> None:
        """Check a parameter's struct: of an array, its address, extents and strides."""
        self.not_null(name)
        if one.kind == "struct":
            return
        data = self._let(f"load ptr, ptr {name}")
        is_empty = "true" if one.is_empty else "false"
        for i, (kind, offset) in enumerate(list(_fields(one))[1:]):
            at = self._let(f"getelementptr i8, ptr {name}, i64 {offset}")
            value = self._let(f"load {kind}, ptr {at}")
            field = "EXTENT" if i < one.extents else "STRIDE"
            if field == "EXTENT":
                self._refuse(self._let(f"icmp slt {kind} {value}, 0"), field)
                zero = self._let(f"icmp eq {kind} {value}, 0")
                is_empty = self._let(f"or i1 {is_empty}, {zero}")
            if (number := one.number(i)) is not None:
                self._refuse(self._let(f"icmp ne {kind} {value}, {number}"), field)
            if one.divisor(i) > 1:
                rest = self._let(f"srem {kind} {value}, {one.divisor(i)}")
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
