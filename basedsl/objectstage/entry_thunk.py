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

from basedsl.binding.storage import check_storage
from basedsl.errors import CompilerBug, plugin_defect
from basedsl.objectstage.pipeline import PipelineContext

ENTRY_SUFFIX = "__entry"


def slot_format(formats: Sequence[str]) -> str:
    """Return the `struct` format of slots for values of these codes, `formats`, each padded to 8
    bytes.
    """
    return "<" + "".join(code + _PADDING.get(code, "") for code in formats)


_PADDING = dict.fromkeys("bB?", "7x") | dict.fromkeys("hHe", "6x") | dict.fromkeys("iIf", "4x")


@dataclass(frozen=True)
class AddEntry:
    """The pass that adds the entry of `name` to LLVM IR text.

    `parameters` are names and argument types, and `results` the results, whose storage must be that
    of the compiled function; errors name the plugin of `language` where it is not.
    """

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()
    results: Any = None
    language: Any = None

    def __call__(self, op: Any, context: PipelineContext) -> str:
        text: str = context.artifact
        signature = _signature(text, self.name)
        if self.results is not None:
            names = [name for name, _ in self.parameters]
            arguments = [kind for _, kind in self.parameters]
            check_storage(self.language, names, arguments)
            self._check(*signature)
        return text + entry_text(self.name, *signature)

    def _check(self, result: str, parameters: Sequence[str]) -> None:
        declared = [
            (name, str(kind), code) for name, kind in self.parameters for code in kind.storage
        ]
        if len(declared) != len(parameters) or not all(
            _holds(code, kind) for (_, _, code), kind in zip(declared, parameters, strict=True)
        ):
            self._refuse("arguments", [code for _, _, code in declared], parameters)
        returned = [kind for _, kind in _parts(result)]
        codes = list(self.results.storage)
        if len(codes) != len(returned) or not all(map(_holds, codes, returned)):
            self._refuse("results", codes, returned)

    def _refuse(self, what: str, codes: Sequence[str], kinds: Sequence[str]) -> None:
        given = "".join(f"\n  {name}: {kind}" for name, kind in self.parameters)
        notes = [
            (f"the storage is {' '.join(codes) or 'nothing'}", None),
            (f"the compiled function has {', '.join(kinds) or 'nothing'}", None),
        ]
        if what == "arguments":
            notes.append((f"the arguments are{given}", None))
        raise plugin_defect(
            self.language,
            f"the C storage of the {what} is not that of the compiled function",
            notes=tuple(notes),
            hint="leave `storage` out: it is derived from the IR types",
        )


_CODES = {
    "i8": "bB?", "i16": "hH", "i32": "iI", "i64": "qQ", "ptr": "qQ", "half": "eH", "bfloat": "H",
    "float": "f", "double": "d",
}  # fmt: skip


def _holds(code: str, kind: str) -> bool:
    """Return True if storage of this `struct` code is a value of this LLVM type."""
    if kind == "i128":
        return code == "16s"
    return code in _CODES.get("ptr" if kind.startswith("ptr") else _stored(kind), "")


def _signature(llvmir: str, name: str) -> tuple[str, list[str]]:
    """Return the LLVM types of the result and of the parameters of the function `name`."""
    found = re.search(rf"^define (.*?)@{re.escape(name)}\(", llvmir, re.MULTILINE)
    if found is None:
        raise CompilerBug(f"the LLVM IR has no function {name!r}")
    result = found[1].split("dso_local")[-1].strip()
    return result, [_type_of(p) for p in _split(_balanced(llvmir, found.end()))]


def _parts(kind: str) -> list[tuple[tuple[int, ...], str]]:
    """Return the place and type of each number or pointer in a type: those of structs and arrays,
    in order.
    """
    if kind == "void":
        return []
    if kind.startswith("{"):
        inside = _split(kind[1:-1])
    elif kind.startswith("["):
        count, _, element = kind[1:-1].partition(" x ")
        inside = [element.strip()] * int(count)
    else:
        return [((), kind)]
    return [((i, *at), leaf) for i, one in enumerate(inside) for at, leaf in _parts(one)]


def entry_text(name: str, result: str, parameters: Sequence[str]) -> str:
    """Return the LLVM IR of the entry of the function `name` of this LLVM signature."""
    body = [f"\ndefine void @{name}{ENTRY_SUFFIX}(ptr %slots) {{"]
    operands, offset = [], 0
    for i, kind in enumerate(parameters):
        offset = _load_slot(body, f"a{i}", kind, offset)
        operands.append(f"{kind} %a{i}")
    assign = "" if result == "void" else "%r = "
    body.append(f"  {assign}call {result} @{name}({', '.join(operands)})")
    for i, (at, kind) in enumerate(_parts(result)):
        value = "r"
        if at:
            value = f"r{i}"
            place = ", ".join(map(str, at))
            body.append(f"  %{value} = extractvalue {result} %r, {place}")
        offset = _store_slot(body, value, kind, offset)
    return "\n".join([*body, "  ret void", "}", ""])


def _load_slot(body: list[str], name: str, kind: str, offset: int) -> int:
    body.append(f"  %{name}.at = getelementptr i8, ptr %slots, i64 {offset}")
    stored = _stored(kind)
    if stored == kind:
        body.append(f"  %{name} = load {kind}, ptr %{name}.at, align 8")
    else:
        body.append(f"  %{name}.raw = load {stored}, ptr %{name}.at, align 8")
        body.append(f"  %{name} = trunc {stored} %{name}.raw to {kind}")
    return offset + _size(kind)


def _store_slot(body: list[str], name: str, kind: str, offset: int) -> int:
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
