"""The dialect's definition as MLIR reads it: IRDL text, made from the declared operations.

The bindings' `ext` module would make it from Python classes, with constructors and properties that
nothing here uses; that takes a tenth of a cold compilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from basedsl_cute.dialect.declare import OPS, FieldSpec, OpView

_MEMREF = """\
irdl.type @memref {
  %element = irdl.base "#builtin.type"
  %space = irdl.base "#builtin.string"
  %layout = irdl.base "#builtin.string"
  irdl.parameters(element: %element, space: %space, layout: %layout)
}
"""


def text() -> str:
    """Return the `irdl.dialect`; it does not contain what operations verify in Python."""
    operations = "".join(_operation(name, op) for name, op in OPS.items())
    return f"irdl.dialect @cute {{\n{_MEMREF}{operations}}}\n"


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


def memref_class(ir: Any) -> Any:
    """Make the Python class of `!cute.memref` types."""

    class MemRefType(ir.DynamicType):  # type: ignore[misc]
        type_name = "cute.memref"

        @classmethod
        def get(cls, element: Any, space: Any, layout: Any) -> Any:
            parameters = [ir.TypeAttr.get(element), space, layout]
            return cls(ir.DynamicType.get(cls.type_name, parameters))

    return MemRefType


def load(dialect: Any, *, again: bool) -> None:
    """Define the dialect in the current context; `again` if it has been in another one."""
    ir = dialect.ir
    with ir.Location.unknown():
        dialect.bindings.irdl.load_dialects(ir.Module.parse(text()))
    for op in OPS.values():
        ir.DynamicOpTrait.attach(op.op_name, _verifier(dialect, op))
    kind = dialect.memref_class
    ir.register_type_caster(ir.DynamicType.lookup_typeid(kind.type_name), replace=again)(kind)


def _verifier(dialect: Any, declared: type[OpView]) -> type:
    def verify_invariants(op: Any) -> bool:
        wrong = declared.refused(dialect, op)
        if wrong is None:
            return True
        op.location.emit_error(f"'{declared.op_name}': {wrong}")
        return False

    return type("Verifier", (), {"verify_invariants": staticmethod(verify_invariants)})
