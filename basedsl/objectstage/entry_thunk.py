"""The C entry of a compiled function: one pointer to its arguments and results.

`void NAME__entry(void *slots)` loads each parameter from the next 8-byte slot (16 for 16-byte
types), calls NAME, and stores its results in the slots that follow. `struct` packs the same layout
(`slot_format`), so a call from Python is one pack, one foreign call, one unpack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basedsl.errors import CompilerBug
from basedsl.objectstage.pipeline import PipelineContext

ENTRY_SUFFIX = "__entry"


def slot_format(formats: Sequence[str]) -> str:
    """Return the `struct` format of slots for values of these codes, each padded to 8 bytes."""
    return "<" + "".join(code + _PADDING.get(code, "") for code in formats)


_PADDING = dict.fromkeys("bB?", "7x") | dict.fromkeys("hHe", "6x") | dict.fromkeys("iIf", "4x")


@dataclass(frozen=True)
class AddEntry:
    """The pass that adds the entry of `name` to LLVM IR text."""

    name: str

    def __call__(self, op: Any, context: PipelineContext) -> str:
        text: str = context.artifact
        return text + entry_text(text, self.name)


def entry_text(llvmir: str, name: str) -> str:
    """Return the LLVM IR of the entry of the function `name` defined in `llvmir`."""
    found = re.search(rf"^define (.*?)@{re.escape(name)}\(", llvmir, re.MULTILINE)
    if found is None:
        raise CompilerBug(f"the LLVM IR has no function {name!r}")
    result = found[1].split("dso_local")[-1].strip()
    parameters = [_type_of(p) for p in _split(_balanced(llvmir, found.end()))]
    body = [f"\ndefine void @{name}{ENTRY_SUFFIX}(ptr %slots) {{"]
    operands, offset = [], 0
    for i, kind in enumerate(parameters):
        offset = _load(body, f"a{i}", kind, offset)
        operands.append(f"{kind} %a{i}")
    assign = "" if result == "void" else "%r = "
    body.append(f"  {assign}call {result} @{name}({', '.join(operands)})")
    if result.startswith("{"):
        for i, kind in enumerate(_split(result[1:-1])):
            body.append(f"  %r{i} = extractvalue {result} %r, {i}")
            offset = _store(body, f"r{i}", kind, offset)
    elif result != "void":
        _store(body, "r", result, offset)
    return "\n".join([*body, "  ret void", "}", ""])


def _load(body: list[str], name: str, kind: str, offset: int) -> int:
    body.append(f"  %{name}.at = getelementptr i8, ptr %slots, i64 {offset}")
    stored = _stored(kind)
    if stored == kind:
        body.append(f"  %{name} = load {kind}, ptr %{name}.at, align 8")
    else:
        body.append(f"  %{name}.raw = load {stored}, ptr %{name}.at, align 8")
        body.append(f"  %{name} = trunc {stored} %{name}.raw to {kind}")
    return offset + _size(kind)


def _store(body: list[str], name: str, kind: str, offset: int) -> int:
    body.append(f"  %{name}.at = getelementptr i8, ptr %slots, i64 {offset}")
    stored = _stored(kind)
    value = f"%{name}"
    if stored != kind:
        body.append(f"  %{name}.raw = zext {kind} {value} to {stored}")
        value = f"%{name}.raw"
    body.append(f"  store {stored} {value}, ptr %{name}.at, align 8")
    return offset + _size(kind)


def _stored(kind: str) -> str:
    width = re.fullmatch(r"i(\d+)", kind)
    return "i8" if width and int(width[1]) < 8 else kind


def _size(kind: str) -> int:
    return 16 if kind == "i128" else 8


def _balanced(text: str, start: int) -> str:
    depth, at = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start : at - 1]


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += {"(": 1, "{": 1, "<": 1, "[": 1, ")": -1, "}": -1, ">": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _type_of(parameter: str) -> str:
    kind = parameter.rpartition(" %")[0]
    return kind.split(" ")[0] if kind[0] not in "{<[" else kind
