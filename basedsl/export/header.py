"""The C header of an exported function.

Numbers are passed by value, arrays as structs of their address, extents and strides. Pointers for
the results follow the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from basedsl.binding.c_interface import C_TYPES, CParameter

# What the C function returns for inputs that it refuses: name, value, what is wrong.
REFUSALS = (
    ("NULL", -1, "a pointer is null: to an array, to data of one with elements, or to a result"),
    ("ALIGNMENT", -2, "an address is no multiple of its alignment"),
    ("EXTENT", -3, "an extent is negative, or not what the code is compiled for"),
    ("STRIDE", -4, "a stride is not what the code is compiled for"),
)
REFUSED = {name: value for name, value, _ in REFUSALS}


@dataclass(frozen=True)
class CInterface:
    """The C interface of one exported function.

    Its names begin with `prefix`; `function` is what C calls. `title` is the Python function,
    `results` are the numbers and structs that it writes through pointers. The header has the lines
    `includes` and `declared` besides; if `module` is not empty, the first parameter is a pointer to
    that type. `memory` is where arrays are, `note` what to link with.
    """

    prefix: str
    function: str
    title: str
    parameters: Sequence[CParameter]
    results: Sequence[CParameter]
    note: str
    includes: Sequence[str] = ()
    declared: Sequence[str] = ()
    module: str = ""
    memory: str = "host"

    def header(self) -> str:
        """Return the text of the header."""
        prefix = self.prefix
        lines = [
            f"/* {self.title}: {self.note} */",
            "#pragma once",
            "#include <stdint.h>",
            *self.includes,
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *self.declared,
            "/* Inputs that are refused before anything runs, with these codes: */",
            *(
                f"#define {prefix}_ERROR_{name} ({value}) /* {why} */"
                for name, value, why in REFUSALS
            ),
            "",
        ]
        passed = [f"{self.module} *module"] if self.module else []
        for one in self.parameters:
            if one.is_struct:
                kind = f"{prefix}{one.suffix}_{one.identifier}_t"
                lines += [*self._told(one), *_struct(kind, one), ""]
                passed.append(f"const {kind} *{one.identifier}")
            elif one.kind == "number":
                passed.append(f"{C_TYPES[one.storage[0]]} {one.identifier}")
            else:
                kind = "void *" if one.kind == "pointer" else f"{one.kind} "
                passed.append(f"{kind}{one.identifier}")
        for one in self.results:
            if one.is_struct:
                kind = f"{prefix}{one.suffix}_{one.identifier}_t"
                lines += [*self._told(one), *_struct(kind, one), ""]
                passed.append(f"{kind} *{one.identifier}")
            else:
                passed.append(f"{C_TYPES[one.storage[0]]} *{one.identifier}")
        return "\n".join(
            [
                *lines,
                "/* The structs of arrays and the results are in host memory. */",
                f"int32_t {self.function}({', '.join(passed) or 'void'});",
                "",
                "#ifdef __cplusplus",
                "}",
                "#endif",
                "",
            ]
        )

    def _told(self, one: CParameter) -> list[str]:
        """The comment above the struct of a parameter."""
        if one.kind == "struct":
            return [f"/* {one.text} */"]
        data, shapes, strides = one.fields
        lines = [
            f"/* {one.text}",
            f"   {data}: an address in {self.memory} memory, a multiple of {one.align} bytes.",
        ]
        for first, count, field in ((0, one.extents, shapes), (one.extents, one.strides, strides)):
            lines += [
                f"   {field}[{i}]: {one.number(first + i)}."
                for i in range(count)
                if one.number(first + i) is not None
            ]
            lines += [
                f"   {field}[{i}]: in elements, a multiple of {one.divisor(first + i)}."
                for i in range(count)
                if one.divisor(first + i) > 1
            ]
        return [*lines[:-1], f"{lines[-1]} */"]


def _struct(kind: str, one: CParameter) -> list[str]:
    if one.kind == "struct":
        pairs = zip(one.fields, one.storage, strict=True)
        fields = [f"  {C_TYPES[code]} {name};" for name, code in pairs]
    else:
        integer = C_TYPES[one.storage[1]] if len(one.storage) > 1 else ""
        data, shapes, strides = one.fields
        fields = [f"  void *{data};"]
        if one.extents:
            fields.append(f"  {integer} {shapes}[{one.extents}];")
        if one.strides:
            fields.append(f"  {integer} {strides}[{one.strides}];")
    return ["typedef struct {", *fields, f"}} {kind};"]
