"""The fields of declared operations: operands, results and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from basedsl.dialect.dialect import Dialect
    from basedsl.dialect.op_view import OpView

TypeOf = Callable[[Any, Mapping[str, Any]], Any]  # of a Dialect and the operands by name
_REQUIRED: Any = object()


class FieldSpec:
    """A field of an operation. `alias` is its parameter of the builder; with a `default` it is
    optional there and in the operation.
    """

    def __init__(self, default: Any = _REQUIRED, alias: str | None = None) -> None:
        self.default = default
        self.alias = alias or ""
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.alias = self.alias or name

    @property
    def is_required(self) -> bool:
        return self.default is _REQUIRED


class OperandSpec(FieldSpec):
    """An SSA value that the operation takes. Only the last one may be optional."""

    index: int

    def __get__(self, view: OpView | None, owner: type) -> Any:
        if view is None:
            return self
        operands = view.op.operands
        if self.default is None and self.index >= len(operands):
            return None
        return operands[self.index]


class ResultSpec(FieldSpec):
    """An SSA value that the operation returns. The builder takes its type, or infers it by
    `factory`.
    """

    index: int

    def __init__(self, alias: str | None = None, factory: TypeOf | None = None) -> None:
        super().__init__(alias=alias)
        self.factory = factory

    def __get__(self, view: OpView | None, owner: type) -> Any:
        return self if view is None else view.op.results[self.index]


class Attribute(FieldSpec):
    """An attribute. `kind` is its class in the bindings, `what` its name in messages."""

    kind: ClassVar[str]
    what: ClassVar[str]

    def __get__(self, view: OpView | None, owner: type) -> Any:
        if view is None:
            return self
        attributes = view.op.attributes
        return self.read(attributes[self.name]) if self.name in attributes else self.default

    def read(self, attribute: Any) -> Any:
        """Convert the attribute to a Python value."""
        return attribute.value

    def make(self, dialect: Dialect, value: Any) -> Any:
        """Convert a Python value to the attribute."""
        return getattr(dialect.ir, self.kind).get(value)

    def accepts(self, dialect: Dialect, attribute: Any) -> bool:
        """Return True if the attribute is of the field's kind."""
        return isinstance(attribute, getattr(dialect.ir, self.kind))


class IntegerField(Attribute):
    kind, what = "IntegerAttr", "an integer of 64 bits"

    def accepts(self, dialect: Dialect, attribute: Any) -> bool:
        return super().accepts(dialect, attribute) and attribute.type.width == 64

    def make(self, dialect: Dialect, value: int) -> Any:
        return dialect.integer(value)


class TextField(Attribute):
    kind, what = "StringAttr", "a string"


class FlagField(Attribute):
    kind, what = "UnitAttr", "a unit"

    def read(self, attribute: Any) -> bool:
        return True

    def make(self, dialect: Dialect, value: bool) -> Any:
        return dialect.ir.UnitAttr.get()


class IntegersField(Attribute):
    kind, what = "DenseI64ArrayAttr", "an array of i64"

    def read(self, attribute: Any) -> list[int]:
        return list(attribute)


# What a class body writes. They return Any, so that a field is annotated with the type it reads as.


def operand(*, default: Any = _REQUIRED) -> Any:
    """Declare an operand; `default=None` makes it optional."""
    return OperandSpec(default)


def result(*, alias: str | None = None, factory: TypeOf | None = None) -> Any:
    """Declare a result. The builder takes its type as the argument `alias`; without it, `factory`
    infers the type from the dialect and the operands by name.
    """
    return ResultSpec(alias, factory)


def i64_attr(*, default: Any = _REQUIRED) -> Any:
    """Declare an integer attribute of 64 bits, read as an int; optional if `default` is given."""
    return IntegerField(default)


def str_attr(*, default: Any = _REQUIRED) -> Any:
    """Declare a string attribute, read as a str; optional if `default` is given."""
    return TextField(default)


def unit_attr(*, default: Any = False) -> Any:
    """Declare a unit attribute, read as a bool, which is `default` if the builder is not told."""
    return FlagField(default)


def i64_array_attr(*, default: Any = _REQUIRED) -> Any:
    """Declare an attribute that is an array of i64, read as a list of int; optional if `default` is
    given.
    """
    return IntegersField(default)


def parameter(*, kw_only: bool = True, default: Any = None) -> Any:
    """Declare a parameter of every builder, for type checkers."""
    return default
