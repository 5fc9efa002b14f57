"""The argument protocol: objects whose methods describe them as arguments of `@jit` functions.

    __c_pointers__(self)                   returns the address of each value's C storage
    __get_mlir_types__(self)               returns the type of each value: `T.i32()`, `Int32`, ...
    __new_from_mlir_values__(self, values) returns the object that the traced function gets

A tensor or pointer of `cute.runtime` and a numeric value have these methods too, so that an object
made of several can concatenate their results. Attributes that are plain values (numbers, strings,
classes) are static: objects that differ in one compile their own code; so are numeric values where
the methods leave some out. A call of what `compile` returned may pass a
named tuple or dataclass whose fields are arrays, numbers or addresses where the one that was
compiled has tensors, numeric values or pointers, and None where a field is annotated `Constexpr`.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from basedsl import (
    TYPES,
    DSLCallError,
    Kind,
    Numeric,
    NumericArgument,
    PartsArgument,
    constexpr_type,
    flatten,
    is_plainly_static,
    leaf_paths,
    static_key,
)
from basedsl_cute.arrays.tensor import HostPointer, HostTensor, from_dlpack
from basedsl_cute.host.tensor_argument import pointer_argument, tensor_argument

_METHODS = ("__c_pointers__", "__get_mlir_types__", "__new_from_mlir_values__")
_BUILT_IN = (HostTensor, HostPointer, Numeric)
# The numbers that have C storage, by MLIR's types, whose integers have no sign.
_OF_MLIR = {
    kind.format.mlir: kind
    for kind in TYPES.values()
    if kind.format.arithmetic and kind.numpy_dtype is not None and kind.kind is not Kind.UNSIGNED
}


def protocol_argument(value: Any, name: str) -> ProtocolArgument | None:
    """Return the argument type of an object with the protocol's methods; None for others. Raises
    DSLCallError if the methods contradict each other.
    """
    kind = type(value)
    if isinstance(value, _BUILT_IN) or not all(hasattr(kind, method) for method in _METHODS):
        return None
    value = _completed(value, value)
    pointers, types = list(value.__c_pointers__()), list(value.__get_mlir_types__())
    if len(pointers) != len(types):
        raise DSLCallError(
            f"'{name}': {kind.__name__} gives {len(pointers)} pointers and {len(types)} types",
            hint="__c_pointers__ and __get_mlir_types__ return as many",
        )
    parts = tuple(_part(p, t, name) for p, t in zip(pointers, types, strict=True))
    return ProtocolArgument(value, parts, _static_facts(value, parts))


def _part(pointer: Any, type_: Any, name: str) -> Any:
    if isinstance(pointer, HostTensor):
        return tensor_argument(pointer, None, name)
    if isinstance(pointer, HostPointer):
        return pointer_argument(pointer, name)
    if isinstance(type_, type) and issubclass(type_, Numeric):
        return NumericArgument(type_)
    if not isinstance(type_, str) and str(type_) in _OF_MLIR:
        return NumericArgument(_OF_MLIR[str(type_)])
    raise DSLCallError(
        f"'{name}': __get_mlir_types__ gives {type_!r}, which is not a numeric type",
        hint="cute.cutlass_dsl.T.i32() and the like, a numeric type as Int32, or what "
        "__get_mlir_types__ of a tensor gives",
    )


def _static_facts(value: Any, parts: Sequence[Any]) -> tuple[Any, ...]:
    """Return what code compiled for `value` relies on besides the types of its `parts`."""
    node, leaves = flatten(value)
    paths = () if node is None else leaf_paths(node, "")
    given = sum(isinstance(part, NumericArgument) for part in parts)
    all_given = given >= sum(isinstance(leaf, Numeric) for leaf in leaves)
    return tuple((path, _fact(leaf, all_given)) for path, leaf in zip(paths, leaves, strict=False))


def _fact(leaf: Any, numbers_are_given: bool) -> Any:
    if isinstance(leaf, Numeric) and not numbers_are_given:
        return type(leaf), leaf.value
    if is_plainly_static(leaf) or isinstance(leaf, int | float | bytes):
        return static_key(leaf)
    return type(leaf)


class ProtocolArgument(PartsArgument):
    """The argument type of an object with the protocol's methods. `template` is such an object,
    `parts` are the argument types of its values.
    """

    def __init__(self, template: Any, parts: tuple[Any, ...], facts: tuple[Any, ...]) -> None:
        super().__init__((type(template), parts, facts), parts)
        self.template = template

    def proxy(self, values: Sequence[Any]) -> Any:
        made, at = [], 0
        for part in self.parts:
            n = len(part.storage)
            plain = isinstance(part, NumericArgument)
            made.append(values[at] if plain else part.proxy(values[at : at + n]))
            at += n
        return self.template.__new_from_mlir_values__(made)

    def pack(self, value: Any) -> tuple[Any, ...]:
        packed: list[Any] = []
        pointers = _completed(self.template, value).__c_pointers__()
        for part, pointer in zip(self.parts, pointers, strict=True):
            if isinstance(part, NumericArgument):
                pointer = _read(part.type, pointer)
            packed += part.pack(pointer)
        return tuple(packed)

    def accepts(self, value: Any, name: str) -> bool:
        """Return True if `value` is of this type but for what calls may write otherwise."""
        filled = _completed(self.template, value)
        found = None if filled is value else protocol_argument(filled, name)
        if found is None or found.key[2] != self.key[2] or len(found.parts) != len(self.parts):
            return False
        given = zip(self.parts, found.parts, filled.__c_pointers__(), strict=True)
        return all(
            part == other or (type(part) is type(other) and part.accepts(one, name))
            for part, other, one in given
        )

    def __str__(self) -> str:
        return f"{type(self.template).__name__}({', '.join(map(str, self.parts))})"


def _completed(template: Any, value: Any) -> Any:
    """Return `value`, a named tuple or dataclass, with tensors for arrays and with values of the
    types that the fields of `template` have; `value` itself where there is nothing to change.
    """
    kind = type(value)
    is_tuple = isinstance(value, tuple) and hasattr(kind, "_fields")
    if kind is not type(template) or not (is_tuple or is_dataclass(value)):
        return value
    notes = inspect.get_annotations(kind)
    names = kind._fields if is_tuple else [one.name for one in fields(value)]
    changes = {}
    for name in names:
        given = getattr(value, name)
        made = _field(getattr(template, name), given, notes.get(name))
        if made is not given:
            changes[name] = made
    if not changes:
        return value
    return value._replace(**changes) if is_tuple else replace(value, **changes)


def _field(known: Any, given: Any, annotation: Any) -> Any:
    if given is None:
        return known if _is_constexpr(annotation) else None
    if isinstance(known, Numeric) and isinstance(given, int | float):
        return type(known)(given)
    if isinstance(known, HostPointer) and isinstance(given, int):
        return HostPointer(known.dtype, given, known.space, known.align)
    if hasattr(given, "__dlpack__") and not isinstance(given, HostTensor):
        return from_dlpack(given)
    return _completed(known, given)


def _is_constexpr(annotation: Any) -> bool:
    if isinstance(annotation, str):  # of a module whose annotations are not evaluated
        return re.match(r"(\w+\.)*Constexpr\b", annotation) is not None
    return constexpr_type(annotation) is not None


def _read(kind: Any, pointer: Any) -> Any:
    """Read the number of type `kind` at an address, an int or a ctypes pointer."""
    address = pointer if isinstance(pointer, int) else ctypes.cast(pointer, ctypes.c_void_p).value
    dtype = kind.numpy_dtype
    raw = ctypes.string_at(address or 0, dtype.itemsize)
    return np.frombuffer(raw, dtype)[0].item()


# Numeric values ----------------------------------------------------------------------------------


def c_pointers_of_number(number: Numeric) -> list[Any]:
    """Return the address of the C storage of `number`, static in a host program, in a list."""
    storage = np.array([number.value], type(number).numpy_dtype)
    # The pointer keeps the bytes alive.
    return [ctypes.pointer(ctypes.create_string_buffer(storage.tobytes(), storage.nbytes))]


def _new_from_values(self: Numeric, values: Sequence[Any]) -> Any:
    (value,) = values
    return value if isinstance(value, Numeric) else type(self).from_value(value)


# The core knows no such protocol; its numbers are parts of such objects.
for _name, _method in (
    ("__c_pointers__", c_pointers_of_number),
    ("__get_mlir_types__", lambda self: [type(self)]),
    ("__new_from_mlir_values__", _new_from_values),
    ("__extract_mlir_values__", lambda self: [self.ir_value()]),
):
    setattr(Numeric, _name, _method)
