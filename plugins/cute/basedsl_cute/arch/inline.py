"""PTX instructions as text, for those that have no name here. The simulator runs text without waits
and jumps (`sim.translate.ptx_text`), and refuses other text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from basedsl import Boolean, DSLTypeError, Numeric, Trace, as_numeric, mlir_type
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.pointer import Pointer

# Names of operands in the text of MLIR's operation `nvvm.inline_ptx`.
_NAMES = re.compile(r"\{\$([rw])(\d+)\}")
_INTEGERS = {16: "h", 32: "r", 64: "l"}
_FLOATS = {16: "h", 32: "f", 64: "d"}


@takes_location
def inline_ptx(
    template: str,
    inputs: Sequence[Any] = (),
    output_types: Any = (),
    *,
    has_side_effects: bool = True,
    read_only_args: Sequence[Any] = (),
) -> Any:
    """Emit the PTX text `template`, in which `$0`, `$1`, ... are first the outputs, then the
    inputs.

        y = inline_ptx("tanh.approx.f32 $0, $1;", [x], Float32)

    `inputs` are numbers of 16, 32 or 64 bits, Booleans (predicates) and pointers (an address: 32
    bits in shared memory, else 64). `output_types` is a numeric class, or several; the result
    is one value, a tuple of them, or None. With `has_side_effects=False` the instructions may
    be moved, merged, or dropped if nobody uses what they compute. Registers of the text's own
    go into braces: `{ .reg .pred p; ... }`. With `read_only_args` instead of `inputs`, the text
    has the names of MLIR's operation `nvvm.inline_ptx`: `{$w0}`, `{$w1}`, ... are the outputs,
    `{$r0}`, `{$r1}`, ... the inputs.
    Raises DSLTypeError for other widths, and for a name in the text that stands for nothing.
    """
    trace = in_kernel("inline_ptx()")
    ir = trace.ir
    single = isinstance(output_types, type)
    kinds = [output_types] if single else list(output_types)
    if read_only_args:
        template = _numbered(template, len(kinds), len(read_only_args))
        inputs = [*inputs, *read_only_args]
    outputs = ["=" + _constraint(kind) for kind in kinds]
    values, constraints = [], []
    for x in inputs:
        number = x.toint() if isinstance(x, Pointer) else as_numeric(x)
        constraints.append(_constraint(type(number)))
        values.append(_raw(trace, number))
    types = [_register_type(ir, kind) for kind in kinds]
    if len(types) > 1:
        types = [ir.Type.parse(f"!llvm.struct<({', '.join(map(str, types))})>")]
    attributes = {
        "asm_string": ir.StringAttr.get(template),
        "constraints": ir.StringAttr.get(",".join([*outputs, *constraints])),
    }
    if has_side_effects:
        attributes["has_side_effects"] = ir.UnitAttr.get()
    made = trace.emit(
        ir.Operation.create,
        "llvm.inline_asm",
        results=types,
        operands=values,
        attributes=attributes,
    )
    if not kinds:
        return None
    if len(kinds) == 1:
        result = _number(trace, made.result, kinds[0])
        return result if single else (result,)
    fields = []
    for i, kind in enumerate(kinds):
        place = {"position": ir.DenseI64ArrayAttr.get([i])}
        field = trace.emit(
            ir.Operation.create,
            "llvm.extractvalue",
            results=[_register_type(ir, kind)],
            operands=[made.result],
            attributes=place,
        )
        fields.append(_number(trace, field.result, kind))
    return tuple(fields)


def _numbered(template: str, outputs: int, inputs: int) -> str:
    """Return the text with `$0`, `$1`, ... for the names of `nvvm.inline_ptx`."""
    counts = {"w": outputs, "r": inputs}

    def number(found: re.Match[str]) -> str:
        kind, i = found[1], int(found[2])
        if i >= counts[kind]:
            given = f"{counts[kind]} {'outputs' if kind == 'w' else 'inputs'}"
            raise DSLTypeError(f"inline_ptx() has {given}, and its text names {found[0]}")
        return f"${i + (outputs if kind == 'r' else 0)}"

    return _NAMES.sub(number, template)


def _constraint(kind: Any) -> str:
    if kind is Boolean:
        return "b"
    numeric = isinstance(kind, type) and issubclass(kind, Numeric)
    letter = (_FLOATS if kind.is_float else _INTEGERS).get(kind.width) if numeric else None
    if letter is None:
        raise DSLTypeError(
            f"inline_ptx() takes Booleans and numbers of 16, 32 or 64 bits, not "
            f"{getattr(kind, '__name__', kind)}",
            hint="convert narrow numbers to Int32 or Uint32",
        )
    return letter


def _register_type(ir: Any, kind: Any) -> Any:
    """Return the IR type of a register: 16-bit floats travel in integer registers."""
    return ir.IntegerType.get_signless(16) if kind.width == 16 else mlir_type(kind, ir)


def _raw(trace: Trace, number: Numeric) -> Any:
    value = number.ir_value()
    if type(number).is_float and type(number).width == 16:
        bits = trace.ir.IntegerType.get_signless(16)
        value = trace.emit_op("arith.bitcast", bits, value)
    return value


def _number(trace: Trace, value: Any, kind: Any) -> Any:
    if kind.is_float and kind.width == 16:
        value = trace.emit_op("arith.bitcast", mlir_type(kind, trace.ir), value)
    return kind.from_value(value)
