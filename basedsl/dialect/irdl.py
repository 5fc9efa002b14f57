"""A dialect's definition as MLIR reads it: IRDL text, made from the declared operations.

The bindings' `ext` module would make it from Python classes, with constructors and properties that
nothing here uses; that takes a tenth of a cold compilation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from basedsl.dialect.fields import FieldSpec
from basedsl.dialect.op_view import OpView

# What a parameter of a type may be: the attribute's definition in MLIR's builtin dialect.
PARAMETERS = {"type": "#builtin.type", "string": "#builtin.string", "integer": "#builtin.integer"}


def text(base: type[OpView], types: Mapping[str, Mapping[str, str]]) -> str:
    """Return the `irdl.dialect`; it does not contain what operations verify in Python."""
    body = "".join(_type(name, parameters) for name, parameters in types.items())
    body += "".join(_operation(name, op) for name, op in base.declared.items())
    return f"irdl.dialect @{base.dialect_name} {{\n{body}}}\n"


def _type(name: str, parameters: Mapping[str, str]) -> str:
    lines = [f'  %{p} = irdl.base "{PARAMETERS[kind]}"\n' for p, kind in parameters.items()]
    if parameters:
        lines.append(f"  irdl.parameters({', '.join(f'{p}: %{p}' for p in parameters)})\n")
    return f"irdl.type @{name} {{\n{''.join(lines)}}}\n"


def _operation(name: str, op: type[OpView]) -> str:
    lines: list[str] = []

    def anything(fields: Iterable[FieldSpec]) -> list[tuple[FieldSpec, str]]:
        # A constraint of each one's own: one that is shared would mean that they are equal.
        made = [(field, f"%{len(lines) + i}") for i, field in enumerate(fields)]
        lines.extend(f"{value} = irdl.any" for _, value in made)
        return made

    values = {"operands": anything(op.operand_fields), "results": anything(op.result_fields)}
    attributes = anything(field for field in op.attribute_fields if field.is_required)
    for kind, fields in values.items():
        if fields:
            shown = [f"{f.name}: {'' if f.is_required else 'optional '}{v}" for f, v in fields]
            lines.append(f"irdl.{kind}({', '.join(shown)})")
    if attributes:
        shown = [f'"{field.name}" = {value}' for field, value in attributes]
        lines.append(f"irdl.attributes {{{', '.join(shown)}}}")
    body = "".join(f"  {line}\n" for line in lines)
    return f"irdl.operation @{name} {{\n{body}}}\n"


def verifier(dialect: Any, declared: type[OpView]) -> type:
    """Make the trait that has MLIR's verifier ask the declaration of an operation."""

    def verify_invariants(op: Any) -> bool:
        wrong = declared.refused(dialect, op)
        if wrong is None:
            return True
        op.location.emit_error(f"'{declared.op_name}': {wrong}")
        return False

    return type("Verifier", (), {"verify_invariants": staticmethod(verify_invariants)})
