"""Operations are declared as classes of typed fields, independent of any bindings package.

An operation is a subclass of `OpView` whose fields are its operands, results and attributes:

    class Scale(OpView, name="scale"):
        \"\"\"...an IR sample...\"\"\"

        source: Value = operand()
        scaled: Value = result(alias="type")
        factor: int = integer()
        order: str | None = text(default=None)

The declaration gives everything else. `Scale(dialect, source=x, type=t, factor=2)` builds the
operation at the current insertion point, as the generated classes of MLIR's bindings do, and is a
view of it: `.scaled` is the result, `.factor` a Python int. `Scale.of(dialect, op)` views one that
exists. `dialect.irdl` defines the operation in MLIR and has it verified: against the fields, then
by `verify`, which returns what is wrong in words, or None.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from basedsl import Span, span_of_location

if TYPE_CHECKING:
    from basedsl_cute.dialect.definition import CuteDialect

Value = Any  # ir.Value or ir.Type: the bindings have no types
TypeOf = Callable[["CuteDialect", Mapping[str, Any]], Any]
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


class Result(FieldSpec):
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

    def make(self, dialect: CuteDialect, value: Any) -> Any:
        """Convert a Python value to the attribute."""
        return getattr(dialect.ir, self.kind).get(value)

    def accepts(self, dialect: CuteDialect, attribute: Any) -> bool:
        """Return True if the attribute is of the field's kind."""
        return isinstance(attribute, getattr(dialect.ir, self.kind))


class IntegerField(Attribute):
    kind, what = "IntegerAttr", "an integer of 64 bits"

    def accepts(self, dialect: CuteDialect, attribute: Any) -> bool:
        return super().accepts(dialect, attribute) and attribute.type.width == 64

    def make(self, dialect: CuteDialect, value: int) -> Any:
        return dialect.integer(value)


class TextField(Attribute):
    kind, what = "StringAttr", "a string"


class FlagField(Attribute):
    kind, what = "UnitAttr", "a unit"

    def read(self, attribute: Any) -> bool:
        return True

    def make(self, dialect: CuteDialect, value: bool) -> Any:
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
    return Result(alias, factory)


def integer(*, default: Any = _REQUIRED) -> Any:
    """Declare an integer attribute of 64 bits, read as an int."""
    return IntegerField(default)


def text(*, default: Any = _REQUIRED) -> Any:
    """Declare a string attribute, read as a str."""
    return TextField(default)


def flag(*, default: Any = False) -> Any:
    """Declare a unit attribute, read as a bool."""
    return FlagField(default)


def integers(*, default: Any = _REQUIRED) -> Any:
    """Declare an attribute that is an array of i64, read as a list of int."""
    return IntegersField(default)


def _parameter(*, kw_only: bool = True, default: Any = None) -> Any:
    """Declare a parameter of every builder, for type checkers."""
    return default


class InvalidOp(Exception):
    """Raised within `verify`: the operation is invalid, for the reason given."""


OPS: dict[str, type[OpView]] = {}
View = TypeVar("View", bound="OpView")


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(operand, result, integer, text, flag, integers, _parameter),
)
class _Declaration:
    """Lets type checkers derive the signature of each operation's builder from its fields."""


class OpView(_Declaration):
    """An operation of the dialect: its fields by name, as Python values where they are attributes.

    Calling a subclass builds an operation at the current insertion point; `loc` is an
    `ir.Location`, by default the current one. Raises TypeError for a field that the operation does
    not have, or that is missing.
    """

    if TYPE_CHECKING:
        dialect: CuteDialect = _parameter(kw_only=False)
        loc: Any = _parameter(default=None)

    op_name: ClassVar[str] = ""
    operand_fields: ClassVar[tuple[OperandSpec, ...]] = ()
    result_fields: ClassVar[tuple[Result, ...]] = ()
    attribute_fields: ClassVar[tuple[Attribute, ...]] = ()
    _parameters: ClassVar[dict[str, FieldSpec]] = {}  # of the builder, in order

    def __init_subclass__(cls, *, name: str = "") -> None:
        """Declare `cute.<name>`. Without a name, a class is a base of declarations with fields."""
        own = [field for field in vars(cls).values() if isinstance(field, FieldSpec)]
        for field in own:
            if isinstance(field, OperandSpec):
                field.index = len(cls.operand_fields)
                cls.operand_fields = (*cls.operand_fields, field)
            elif isinstance(field, Result):
                field.index = len(cls.result_fields)
                cls.result_fields = (*cls.result_fields, field)
            elif isinstance(field, Attribute):
                cls.attribute_fields = (*cls.attribute_fields, field)
        fields = (*cls.operand_fields, *cls.result_fields, *cls.attribute_fields)
        cls._parameters = {field.alias: field for field in fields}
        if not name:
            return
        if name in OPS:
            raise ValueError(f"cute.{name} is declared by {OPS[name].__name__} and {cls.__name__}")
        cls.op_name = f"cute.{name}"
        OPS[name] = cls

    def __init__(self, dialect: CuteDialect, *, loc: Any = None, **fields: Any) -> None:
        cls = type(self)
        build = cls._builder()
        cls.__init__ = build  # type: ignore[method-assign]  # for all further calls
        self.dialect = dialect
        self.op: Any = None  # ir.Operation
        build(self, dialect, loc=loc, **fields)

    @classmethod
    def _builder(cls) -> Callable[..., None]:
        """Generate the constructor, as dataclasses do: a loop over the fields would take three
        times as long as building the operation.
        """
        names: dict[str, Any] = {}
        parameters, lines = [], []
        operands = [field.name for field in cls.operand_fields]
        for alias, field in cls._parameters.items():
            parameters.append(alias if field.is_required else f"{alias}={field.default}")
            if isinstance(field, Attribute):
                names[f"make_{alias}"] = field.make
                if not field.is_required:
                    lines.append(f"if {alias} is not {field.default}:")
                make = f"attributes[{alias!r}] = make_{alias}(dialect, {alias})"
                lines.append(make if field.is_required else f"    {make}")
            elif isinstance(field, Result) and field.factory is not None:
                names[f"infer_{alias}"] = field.factory
                parameters[-1] = f"{alias}=None"
                given = ", ".join(f"{name!r}: {name}" for name in operands)
                lines += [
                    f"if {alias} is None:",
                    f"    {alias} = infer_{alias}(dialect, {{{given}}})",
                ]
        lines += ["self.dialect = dialect", f"operands = [{', '.join(operands)}]"]
        if operands and not cls.operand_fields[-1].is_required:
            lines += [f"if {operands[-1]} is None:", "    operands.pop()"]
        results = ", ".join(field.alias for field in cls.result_fields)
        lines += [
            f"self.op = dialect.create({cls.op_name!r}, results=[{results}], operands=operands,",
            "    attributes=attributes, loc=loc)",
        ]
        text = f"def build(self, dialect, *, {', '.join([*parameters, 'loc=None'])}):\n"
        text += "\n".join(f"    {line}" for line in ("attributes = {}", *lines))
        exec(text, names)
        build: Callable[..., None] = names["build"]
        build.__qualname__ = cls.op_name  # as errors about its arguments call it
        return build

    @classmethod
    def of(cls: type[View], dialect: CuteDialect, op: Any) -> View:
        """View an operation that exists."""
        view = object.__new__(cls)
        view.dialect = dialect
        view.op = op
        return view

    @property
    def span(self) -> Span | None:
        """The Python line that the operation came from."""
        return span_of_location(self.op.location)

    def verify(self) -> str | None:
        """Return what is wrong with the operation beyond its fields, or None if it is valid."""
        return None

    @classmethod
    def refused(cls, dialect: CuteDialect, op: Any) -> str | None:
        """Return what is wrong with `op`, or None if it is valid: the number of its operands and
        results is checked, then its attributes, then `verify`.
        """
        for what, values, fields in (
            ("operands", op.operands, cls.operand_fields),
            ("results", op.results, cls.result_fields),
        ):
            least = sum(field.is_required for field in fields)
            if not least <= len(values) <= len(fields):
                names = ", ".join(f.name for f in fields) or "none"
                return f"{len(values)} {what}, where it has {names}"
        attributes = op.attributes
        if len(attributes) or (cls.attribute_fields and cls.attribute_fields[0].is_required):
            for field in cls.attribute_fields:
                if field.name in attributes:
                    attribute = attributes[field.name]
                    if not field.accepts(dialect, attribute):
                        return f"the attribute '{field.name}' is {attribute}, not {field.what}"
                elif field.is_required:
                    return f"the attribute '{field.name}' is missing"
        try:
            return cls.of(dialect, op).verify()
        except InvalidOp as wrong:
            return str(wrong)

    @classmethod
    def doc(cls) -> str:
        """The docstring."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def sample(cls) -> str:
        """Return the IR in the docstring: the paragraphs that begin with an operation or its
        result.
        """
        paragraphs = [textwrap.dedent(p) for p in cls.doc().split("\n\n")]
        return "\n".join(p for p in paragraphs if p.startswith(("%", '"cute.')))
