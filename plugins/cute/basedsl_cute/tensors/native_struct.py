"""`cute.native_struct`: a mutable record of numbers with C's layout, passed by value.

Fields of an instance are ordinary attributes: assigning one in a kernel, also in a loop or a
branch, is state like any variable. A field keeps its type: Python numbers convert, other numbers
have to match. Constexpr fields take no storage and are known while compiling.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from basedsl import DSLTypeError, Numeric, constexpr_type, with_article
from basedsl_cute.tensors.pointer import as_element
from basedsl_cute.tensors.smem_struct import annotations_in, declare

_FIELDS = "__native_fields__"  # of a class: the type of each field, None for a Constexpr one
_UNSET = object()


def native_struct(cls: Any = None, *, zero_init: bool = True, packed: bool = False) -> Any:
    """Make a class a record of annotated fields: numeric types, Constexpr, other native structs.

    Its constructor takes the fields as keyword or positional arguments. Fields that are not given
    are zero; with `zero_init=False` they have no value until they are assigned, and reading one is
    a DSLTypeError. `packed` leaves out C's padding. The class gets `size_in_bytes()`,
    `offset_of(name)` and `__alignof__()`, in bytes. Raises DSLTypeError for other field types.

    >>> import basedsl_cute as cute
    >>> @cute.native_struct
    ... class Range:
    ...     first: cute.Int32
    ...     count: cute.Int64
    ...     step: cute.Constexpr = 1
    >>> Range.size_in_bytes(), Range.offset_of("count")
    (16, 8)
    """
    frame = sys._getframe(1)

    def decorate(cls: type) -> type:
        return _make(cls, annotations_in(cls, frame), zero_init, packed)

    return decorate if cls is None else decorate(cls)


def _make(cls: type, annotations: dict[str, Any], zero_init: bool, packed: bool) -> type:
    kinds = {name: _kind(name, kind, cls) for name, kind in annotations.items()}
    cls.__annotations__ = annotations
    for name, kind in kinds.items():
        if name not in vars(cls):
            setattr(cls, name, dataclasses.field(default_factory=_default(name, kind, zero_init)))
    made: Any = dataclasses.dataclass(cls)
    stored = {name: _plan_of(kind) for name, kind in kinds.items() if kind is not None}
    plan = declare(cls.__name__, stored, packed=packed)
    setattr(made, _FIELDS, kinds)
    made.size_in_bytes = staticmethod(plan.size_in_bytes)
    made.offset_of = staticmethod(plan.offset_of)
    made.__alignof__ = staticmethod(plan.__alignof__)
    made.__native_plan__ = plan
    made.__setattr__ = _set
    if not zero_init:
        made.__getattribute__ = _get
    return made  # type: ignore[no-any-return]


class _Nothing:
    """The value of a field that has none yet."""


def _kind(name: str, annotation: Any, cls: type) -> Any:
    if constexpr_type(annotation) is not None:
        return None
    is_class = isinstance(annotation, type)
    if is_class and issubclass(annotation, Numeric) and hasattr(annotation, "width"):
        return annotation
    if is_class and hasattr(annotation, _FIELDS):
        return annotation
    raise DSLTypeError(
        f"'{name}' of {cls.__name__}: {annotation!r} is no field type",
        hint="a numeric type, Constexpr, or another native_struct",
    )


def _default(name: str, kind: Any, zero_init: bool) -> Any:
    def missing() -> Any:
        raise TypeError(f"the Constexpr field '{name}' is not given")

    if kind is None:
        return missing  # a dataclass has no required field behind one with a default
    if not zero_init:
        return _Nothing
    return kind if hasattr(kind, _FIELDS) else lambda: 0


def _plan_of(kind: Any) -> Any:
    return getattr(kind, "__native_plan__", kind)


def _set(self: Any, name: str, value: Any) -> None:
    kinds = getattr(type(self), _FIELDS)
    if name not in kinds:
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")
    kind = kinds[name]
    if kind is not None and not isinstance(value, _Nothing):
        if not hasattr(kind, _FIELDS):
            value = as_element(kind, value)
        elif not isinstance(value, kind):
            raise DSLTypeError(
                f"the field '{name}' is {with_article(kind)}, not {with_article(type(value))}"
            )
    object.__setattr__(self, name, value)


def _get(self: Any, name: str) -> Any:
    value = object.__getattribute__(self, name)
    if type(value) is _Nothing:
        raise DSLTypeError(
            f"the field '{name}' of {type(self).__name__} is read before it has a value",
            hint="assign it first, or leave out zero_init=False",
        )
    return value
