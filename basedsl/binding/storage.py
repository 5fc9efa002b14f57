"""The C storage of arguments, derived from their IR types and checked against them.

A type of MLIR says how C passes its values: `struct` codes, one for a number or a pointer. A memref
takes several: the allocated and the aligned pointer, the offset in elements, then each size and
each stride, all of 64 bits. An unranked memref takes its rank and a pointer to these.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from basedsl.binding.arguments import AdaptedArgument, ArgumentType, PartsArgument
from basedsl.errors import plugin_defect

_INTEGER_CODES = {8: "b", 16: "h", 32: "i", 64: "q", 128: "16s"}
_FLOAT_CODES = {"f16": "e", "bf16": "H", "f32": "f", "tf32": "f", "f64": "d"}
# Codes of the same bytes: signs are no concern of C storage.
_ALIKE = [{"b", "B", "?"}, {"h", "H", "e"}, {"i", "I"}, {"q", "Q"}, {"f"}, {"d"}, {"16s"}]


@functools.cache
def codes_of(ir_type: str) -> tuple[str, ...] | None:
    """Return the `struct` codes of an MLIR type, given its text; None if it has no C storage of
    its own: a vector, a tensor, a type of a DSL's own dialect.
    """
    if found := re.fullmatch(r"[su]?i(\d+)", ir_type):
        width = int(found[1])
        code = "b" if width < 8 else _INTEGER_CODES.get(width)
        return None if code is None else (code,)
    if ir_type == "index" or re.fullmatch(r"!llvm\.ptr(<\d+>)?", ir_type):
        return ("q",)
    if ir_type in _FLOAT_CODES:
        return (_FLOAT_CODES[ir_type],)
    if re.fullmatch(r"f[468]E\w+", ir_type):
        return ("B",)
    if ir_type.startswith("memref<*x"):
        return ("q", "q")
    if found := re.match(r"memref<((?:(?:\?|\d+)x)*)", ir_type):
        return ("q",) * (3 + 2 * found[1].count("x"))
    return None


def same_bytes(code: str, other: str) -> bool:
    """Return True if C storage of one `struct` code may be read under the other."""
    return code == other or any(code in alike and other in alike for alike in _ALIKE)


def settle_storage(
    language: Any, names: Iterable[str], arguments: Sequence[ArgumentType], ir: Any
) -> None:
    """Derive the storage of argument types that do not declare it. `names` are the parameters'.
    Raises CompilerBug, which names the plugin, for an IR type whose storage is not known.
    """
    for name, argument in zip(names, arguments, strict=True):
        for leaf in _leaves(argument):
            kinds = [str(kind) for kind in leaf.ir_types(ir)]
            if not _is_derived(leaf):
                vars(leaf)["_ir_types"] = kinds  # for `check_storage`
                continue
            codes: list[str] = []
            for kind in kinds:
                found = codes_of(kind)
                if found is None:
                    raise plugin_defect(
                        language,
                        f"{type(leaf).__name__} has a value of type {kind}, whose C storage is not "
                        "known",
                        notes=((f"it is the argument type of '{name}'", None),),
                        hint="declare `storage`: a `struct` code for each C value, () for none",
                    )
                codes += found
            vars(leaf)["_storage"] = tuple(codes)


def check_storage(language: Any, names: Iterable[str], arguments: Sequence[ArgumentType]) -> None:
    """Check the storage that argument types declare, after `settle_storage`, against their IR
    types: native code takes these. Raises CompilerBug, which names the plugin, where they disagree.
    """
    for name, argument in zip(names, arguments, strict=True):
        for leaf in _leaves(argument):
            if _is_derived(leaf):
                continue
            texts: list[str] = vars(leaf)["_ir_types"]
            known = [codes_of(text) for text in texts]
            if None in known:
                continue
            declared = tuple(leaf.storage)
            wanted = tuple(code for codes in known if codes for code in codes)
            if len(declared) != len(wanted) or not all(map(same_bytes, declared, wanted)):
                raise plugin_defect(
                    language,
                    f"{type(leaf).__name__}.storage is {declared}, but {', '.join(texts)} take "
                    f"{wanted}",
                    notes=((f"it is the argument type of '{name}'", None),),
                    hint="leave `storage` out: it is derived from the IR types",
                )


def derived_storage(arguments: Iterable[ArgumentType]) -> list[list[str]]:
    """Return the storage of the argument types that do not declare it, in order, for the disk."""
    return [list(leaf.storage) for leaf in _derived_leaves(arguments)]


def restore_storage(arguments: Iterable[ArgumentType], known: Sequence[Sequence[str]]) -> None:
    """Give argument types what `derived_storage` returned for equal ones."""
    for leaf, codes in zip(_derived_leaves(arguments), known, strict=True):
        vars(leaf)["_storage"] = tuple(codes)


def _leaves(argument: ArgumentType) -> Iterator[ArgumentType]:
    if isinstance(argument, AdaptedArgument):
        yield from _leaves(argument.inner)
    elif isinstance(argument, PartsArgument):
        for part in argument.parts:
            yield from _leaves(part)
    else:
        yield argument


def _derived_leaves(arguments: Iterable[ArgumentType]) -> Iterator[ArgumentType]:
    return (leaf for one in arguments for leaf in _leaves(one) if _is_derived(leaf))


def _is_derived(argument: ArgumentType) -> bool:
    return type(argument).storage is ArgumentType.storage
