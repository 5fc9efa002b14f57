"""The dialect's definition as MLIR reads it: IRDL text, made from the records of `dialect.ops`.

The bindings' `ext` module would make it from Python classes, with constructors and properties that
nothing here uses; that takes a tenth of a cold compilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from basedsl_cute.dialect.declare import OPS, Operands, OpSpec

_MEMREF = """\
irdl.type @memref {
  %element = irdl.base "#builtin.type"
  %space = irdl.base "#builtin.string"
  %layout = irdl.base "#builtin.string"
  irdl.parameters(element: %element, space: %space, layout: %layout)
}
"""


def text() -> str:
    """The `irdl.dialect`. What an op's verifier says of types and attributes is not in it."""
    return f"irdl.dialect @cute {{\n{_MEMREF}{''.join(map(_op, OPS.values()))}}}\n"


def _op(spec: OpSpec) -> str:
    lines: list[str] = []

    def anything(names: Iterable[str]) -> list[tuple[str, str]]:
        # A constraint of each one's own: one that is shared would mean that they are equal.
        made = [(name, f"%{len(lines) + i}") for i, name in enumerate(names)]
        lines.extend(f"{value} = irdl.any" for _, value in made)
        return made

    fields = {"operands": anything(spec.operands), "results": anything(spec.results)}
    attributes = anything(spec.attributes)
    for kind, named in fields.items():
        shown = [f"{n.lstrip('?')}: {'optional ' * (n[0] == '?')}{value}" for n, value in named]
        if shown:
            lines.append(f"irdl.{kind}({', '.join(shown)})")
    if attributes:
        shown = [f'"{name}" = {value}' for name, value in attributes]
        lines.append(f"irdl.attributes {{{', '.join(shown)}}}")
    body = "".join(f"  {line}\n" for line in lines)
    return f"irdl.operation @{spec.name} {{\n{body}}}\n"


def memref_class(ir: Any) -> Any:
    """The class of `!cute.memref` types in Python."""

    class MemRefType(ir.DynamicType):  # type: ignore[misc, name-defined]
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
    for spec in OPS.values():
        ir.DynamicOpTrait.attach(spec.full_name, _verifier(dialect, spec))
    kind = dialect.memref_class
    ir.register_type_caster(ir.DynamicType.lookup_typeid(kind.type_name), replace=again)(kind)


def _verifier(dialect: Any, spec: OpSpec) -> type:
    def verify_invariants(op: Any) -> bool:
        wrong = spec.verify(Operands(dialect, spec, op))
        if wrong is None:
            return True
        op.location.emit_error(f"'{spec.full_name}': {wrong}")
        return False

    return type("Verifier", (), {"verify_invariants": staticmethod(verify_invariants)})
