"""The C interface of an exported function: its parameters, and the header that declares them.

A tensor is a struct of its address and its dynamic extents and strides, in order; numbers are
passed by value, a stream as a CUstream. Pointers for the results follow the parameters. Functions
return 0 or a CUresult.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl import (
    AdaptedArgument,
    DSLCallError,
    NumericArgument,
    StaticArgument,
    TreeArgument,
    leaf_paths,
)
from basedsl_cute.host.stream import StreamArgument
from basedsl_cute.host.tensor_argument import PointerArgument, TensorArgument

# `struct` codes -> C types and LLVM types. Half and narrower floats are passed as their bits.
C_TYPES = {
    "b": "int8_t", "B": "uint8_t", "h": "int16_t", "H": "uint16_t", "e": "uint16_t",
    "i": "int32_t", "I": "uint32_t", "q": "int64_t", "Q": "uint64_t", "f": "float", "d": "double",
}  # fmt: skip
LLVM_TYPES = {
    "b": "i8", "B": "i8", "h": "i16", "H": "i16", "e": "i16", "i": "i32", "I": "i32", "q": "i64",
    "Q": "i64", "f": "float", "d": "double",
}  # fmt: skip


@dataclass(frozen=True)
class CParameter:
    """One C parameter. `kind` is tensor, pointer, stream or number; `storage` are its `struct`
    codes, of a tensor those of its address and its dynamic extents and strides. Of a tensor or
    pointer, the address is a multiple of `align` bytes; `divisors` divide the dynamic extents and
    strides, in order; `is_empty` tells that a static extent is 0.
    """

    name: str
    kind: str
    storage: tuple[str, ...]
    extents: int = 0
    text: str = ""
    align: int = 1
    divisors: tuple[int, ...] = ()
    is_empty: bool = False

    @property
    def strides(self) -> int:
        return len(self.storage) - 1 - self.extents


def parameters_of(names: Sequence[str], arguments: Sequence[Any]) -> list[CParameter]:
    """The C parameters of a compiled function; DSLCallError for one without a C type."""
    return [
        one
        for name, argument in zip(names, arguments, strict=True)
        for one in _parameters(name, argument)
    ]


def _parameters(name: str, argument: Any) -> Iterator[CParameter]:
    if isinstance(argument, StaticArgument):
        return
    if isinstance(argument, AdaptedArgument):
        yield from _parameters(name, argument.inner)
    elif isinstance(argument, TreeArgument):
        paths = leaf_paths(argument.node, name)
        for path, part in zip(paths, argument.parts, strict=True):
            yield from _parameters(path, part)
    elif isinstance(argument, TensorArgument):
        extents = sum(n is None for n in argument.shape)
        yield CParameter(
            _c_name(name),
            "tensor",
            argument.storage,
            extents,
            str(argument),
            argument.align,
            argument.divisors or (1,) * (len(argument.storage) - 1),
            0 in argument.shape,
        )
    elif isinstance(argument, PointerArgument):
        yield CParameter(_c_name(name), "pointer", ("Q",), text=str(argument), align=argument.align)
    elif isinstance(argument, StreamArgument):
        yield CParameter(_c_name(name), "stream", ("Q",))
    elif isinstance(argument, NumericArgument) and argument.storage[0] in C_TYPES:
        yield CParameter(_c_name(name), "number", argument.storage, text=str(argument))
    else:
        raise DSLCallError(f"'{name}' is {argument}, which has no C type")


def _c_name(path: str) -> str:
    return re.sub(r"\W+", "_", path).strip("_")


# What the C function returns for inputs that it refuses: name, value, what is wrong.
REFUSALS = (
    (
        "NULL",
        -1,
        "a pointer is null: to a tensor, to the data of one with elements, or to a result",
    ),
    ("ALIGNMENT", -2, "an address is no multiple of its alignment"),
    ("EXTENT", -3, "a dynamic extent is negative, or no multiple of what divides it"),
    ("STRIDE", -4, "a dynamic stride is no multiple of what divides it"),
)
REFUSED = {name: value for name, value, _ in REFUSALS}


def header(
    prefix: str,
    title: str,
    parameters: Sequence[CParameter],
    results: Sequence[str],
    memory: str = "GPU",
) -> str:
    """The text of the C header. `memory` is the side that tensors are on, "GPU" or "host"."""
    module = f"{prefix}_Kernel_Module_t"
    lines = [
        f"/* {title}: made by basedsl_cute. Link with -lcuda. */",
        "#pragma once",
        "#include <stdint.h>",
        "#include <cuda.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* The kernels. All functions return 0 or a CUresult; errors count for one thread at a "
        "time. */",
        f"typedef struct {{ void *library; }} {module};",
        "",
        "/* Inputs that are refused before anything runs, with these codes: */",
        *(f"#define {prefix}_ERROR_{name} ({value}) /* {why} */" for name, value, why in REFUSALS),
        "",
        "/* For the device of the current context. */",
        f"int32_t {prefix}_Kernel_Module_Load({module} *module);",
        f"int32_t {prefix}_Kernel_Module_Unload({module} *module);",
        "",
    ]
    declared = [f"{module} *module"]
    for one in parameters:
        if one.kind == "tensor":
            kind = f"{prefix}_Tensor_{one.name}_t"
            lines += [*_told(one, memory), *_tensor_struct(kind, one), ""]
            declared.append(f"const {kind} *{one.name}")
        elif one.kind == "number":
            declared.append(f"{C_TYPES[one.storage[0]]} {one.name}")
        else:
            declared.append(f"{'void *' if one.kind == 'pointer' else 'CUstream '}{one.name}")
    declared += [f"{C_TYPES[code]} *result{i}" for i, code in enumerate(results)]
    return "\n".join(
        [
            *lines,
            "/* The structs of tensors and the results are in host memory. */",
            f"int32_t {wrapper_name(prefix)}({', '.join(declared)});",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
        ]
    )


def _told(one: CParameter, memory: str) -> list[str]:
    """The comment above the struct of a tensor."""
    lines = [
        f"/* {one.text}",
        f"   data: an address in {memory} memory, a multiple of {one.align} bytes.",
    ]
    parts = ((one.divisors[: one.extents], "shapes"), (one.divisors[one.extents :], "strides"))
    for divisors, field in parts:
        lines += [
            f"   dynamic_{field}[{i}]: in elements, a multiple of {divisor}."
            for i, divisor in enumerate(divisors)
            if divisor > 1
        ]
    return [*lines[:-1], f"{lines[-1]} */"]


def _tensor_struct(kind: str, one: CParameter) -> list[str]:
    integer = C_TYPES[one.storage[1]] if len(one.storage) > 1 else ""
    fields = ["  void *data;"]
    if one.extents:
        fields.append(f"  {integer} dynamic_shapes[{one.extents}];")
    if one.strides:
        fields.append(f"  {integer} dynamic_strides[{one.strides}];")
    return ["typedef struct {", *fields, f"}} {kind};"]


def wrapper_name(prefix: str) -> str:
    """The name of the C function that calls the exported function."""
    return f"cute_dsl_{prefix}_wrapper"
