"""Operations declared as classes of typed fields, independent of any bindings package."""

from __future__ import annotations

import inspect
import keyword
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from basedsl.dialect.fields import (
    Attribute,
    FieldSpec,
    OperandSpec,
    ResultSpec,
    i64_array_attr,
    i64_attr,
    operand,
    parameter,
    result,
    str_attr,
    unit_attr,
)
from basedsl.location import Span
from basedsl.objectstage import span_of_location

if TYPE_CHECKING:
    from basedsl.dialect.dialect import Dialect


class InvalidOp(Exception):
    """Raised within `verify`: the operation is invalid, for the reason given."""


View = TypeVar("View", bound="OpView")

# Generated with the first operation of a class. They are no attributes of the class: a program that
# reaches it would seem to change it while it is traced.
_builders: dict[type[OpView], Callable[..., None]] = {}


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(operand, result, i64_attr, str_attr, unit_attr, i64_array_attr, parameter),
)
class _Declaration:
    """Lets type checkers derive the signature of each operation's builder from its fields."""


class OpView(_Declaration):
    """An operation of a declared dialect: its fields by name, attributes as Python values.

    `class ArraysOp(OpView, dialect="arrays")` is the base of a dialect's operations, `class
    Clamp(ArraysOp, name="clamp")` one of them. Calling it builds an operation at the current
    insertion point: `Clamp(dialect, source=x, low=y)`; `loc` is an `ir.Location`, by default the
    current one. `Clamp.of(dialect, op)` is the view of one that exists.

    Raises TypeError for a field that the operation does not have, or that is missing; ValueError
    for a declaration that is twice there, or whose field has a name that is taken.
    """

    if TYPE_CHECKING:
        dialect: Any = parameter(kw_only=False)  # the `Dialect` of the operation
        loc: Any = parameter(default=None)

    dialect_name: ClassVar[str] = ""
    declared: ClassVar[dict[str, type[OpView]]] = {}  # the dialect's operations by name
    op_name: ClassVar[str] = ""
    operand_fields: ClassVar[tuple[OperandSpec, ...]] = ()
    result_fields: ClassVar[tuple[ResultSpec, ...]] = ()
    attribute_fields: ClassVar[tuple[Attribute, ...]] = ()
    _operand_counts: ClassVar[range] = range(1)
    _parameters: ClassVar[dict[str, FieldSpec]] = {}  # of the builder, in order

    def __init_subclass__(cls, *, name: str = "", dialect: str = "") -> None:
        """Declare the operation `name`, or begin the dialect `dialect`. Without either, the class
        is a base of declarations with fields.
        """
        if dialect:
            cls.dialect_name, cls.declared = dialect, {}
        own = [field for field in vars(cls).values() if isinstance(field, FieldSpec)]
        for field in own:
            if keyword.iskeyword(field.name) or field.name in _TAKEN:
                raise ValueError(f"{cls.__name__}: a field cannot be called '{field.name}'")
            if isinstance(field, OperandSpec):
                field.index = len(cls.operand_fields)
                cls.operand_fields = (*cls.operand_fields, field)
            elif isinstance(field, ResultSpec):
                field.index = len(cls.result_fields)
                cls.result_fields = (*cls.result_fields, field)
            elif isinstance(field, Attribute):
                cls.attribute_fields = (*cls.attribute_fields, field)
        fields = (*cls.operand_fields, *cls.result_fields, *cls.attribute_fields)
        cls._parameters = {field.alias: field for field in fields}
        least = sum(field.is_required for field in cls.operand_fields)
        cls._operand_counts = range(least, len(cls.operand_fields) + 1)
        if not name:
            return
        if not cls.dialect_name:
            raise ValueError(
                f"{cls.__name__} is of no dialect: its base says `OpView, dialect=...`"
            )
        cls.op_name = f"{cls.dialect_name}.{name}"
        other = cls.declared.setdefault(name, cls)
        if other is not cls:
            raise ValueError(f"{cls.op_name} is declared by {other.__name__} and {cls.__name__}")

    def __init__(self, dialect: Dialect, *, loc: Any = None, **fields: Any) -> None:
        self.dialect = dialect
        self.op: Any = None  # ir.Operation
        kind = type(self)
        build = _builders.get(kind)
        if build is None:
            build = _builders[kind] = kind._builder()
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
            parameters.append(alias if field.is_required else f"{alias}={field.default!r}")
            if isinstance(field, Attribute):
                names[f"make_{alias}"] = field.make
                if not field.is_required:
                    lines.append(f"if {alias} != {field.default!r}:")
                make = f"attributes[{alias!r}] = make_{alias}(dialect, {alias})"
                lines.append(make if field.is_required else f"    {make}")
            elif isinstance(field, ResultSpec) and field.factory is not None:
                names[f"infer_{alias}"] = field.factory
                parameters[-1] = f"{alias}=None"
                given = ", ".join(f"{name!r}: {name}" for name in operands)
                lines += [
                    f"if {alias} is None:",
                    f"    {alias} = infer_{alias}(dialect, {{{given}}})",
                ]
        lines += [f"operands = [{', '.join(operands)}]"]
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
    def of(cls: type[View], dialect: Dialect, op: Any) -> View:
        """View `op`, an `ir.Operation` of this kind that exists, of a loaded `dialect`."""
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
    def refused(cls, dialect: Dialect, op: Any) -> str | None:
        """Return what is wrong with `op`, an `ir.Operation` of this kind, or None if it is valid:
        the number of its operands and results is checked, then its attributes, then `verify`.
        `dialect` is the loaded one that the operation belongs to.
        """
        if len(operands := op.operands) not in cls._operand_counts:
            return f"{len(operands)} operands, where it has {_listed(cls.operand_fields)}"
        if len(results := op.results) != len(cls.result_fields):
            return f"{len(results)} results, where it has {_listed(cls.result_fields)}"
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
        return "\n".join(p for p in paragraphs if p.startswith(("%", f'"{cls.dialect_name}.')))


def _listed(fields: Iterable[FieldSpec]) -> str:
    return ", ".join(field.name for field in fields) or "none"


_TAKEN = {*dir(OpView), "dialect", "loc", "op", "self"}  # names that a view has, or its builder
