"""Rules of LLVM's pointers, aggregates and intrinsics; those of its arithmetic are in `arith`.

A pointer is a 64-bit integer: a host address, or an offset for shared and local memory.
"""

from __future__ import annotations

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import barriers, checks
from basedsl_cute.sim.machine.memory import SHARED_WINDOW
from basedsl_cute.sim.rules.arith import int_type, truncate
from basedsl_cute.sim.rules.memory import scope_of
from basedsl_cute.sim.translate.addresses import DYNAMIC, step_into
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import always, rule
from basedsl_cute.sim.translate.types import (
    IntType,
    PtrType,
    VectorType,
    dtype_of,
    element_type,
    parse_type,
    round_up,
)


@rule("llvm.mlir.addressof", uniform=always)
def _address_of(e: PythonEmitter, op: Op) -> None:
    name = op.attributes["global_name"].lstrip("@").strip('"')
    e.set_address(op.results[0], name)


@rule("llvm.alloca", uniform=always)
def _alloca(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    e.set_constant(result, dtype_of(PtrType()).type(e.memory_map.local[result.number]))


@rule("llvm.getelementptr")
def _gep(e: PythonEmitter, op: Op) -> None:
    base, *dynamic = op.operands
    type_ = parse_type(op.attributes["elem_type"])
    terms, offset = [], 0
    for position, index in enumerate(op.integers("rawConstantIndices")):
        known: int | None = index
        value: Value | None = None
        if index == DYNAMIC:
            value = dynamic.pop(0)
            constant = e.constant(value)
            known = None if constant is None else int(constant)
        if position == 0:
            stride = round_up(type_.size, type_.align)
            step = stride if known is None else stride * known
        else:
            type_, step = step_into(type_, known)
        if known is not None:
            offset += step
        else:
            assert value is not None
            terms.append((value, step))
    (result,) = op.results
    if not terms and e.constant(base) is not None and e.ref(base) not in e.variables:
        e.set_constant(result, e.constant(base) + offset)
        return
    name = e.raw if result in e.affine else e.ref
    expression = name(base)
    for value, stride in terms:
        index64 = name(value)
        if element_type(value.type).size < 8:
            index64 += ".astype(i64)"
        expression += f" + {index64} * {stride}" if stride != 1 else f" + {index64}"
    if offset:
        expression += f" + {offset}"
    e.let(op.results[0], expression)


def _window(space: int) -> int:
    return SHARED_WINDOW if space == 3 else 0


@rule("llvm.addrspacecast")
def _addrspacecast(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    assert isinstance(source.type, PtrType) and isinstance(result.type, PtrType)
    shift = _window(source.type.space) - _window(result.type.space)
    e.let(result, f"{e.ref(source)} + {shift}" if shift else e.ref(source))


@rule("llvm.ptrtoint", "llvm.ptrtoaddr")
def _ptrtoint(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    wide = int_type(result).width >= 64
    e.let(result, e.ref(source) if wide else truncate(e, e.ref(source), result))


@rule("llvm.inttoptr")
def _inttoptr(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    if int_type(source).width == 64:
        e.let(result, e.ref(source))
    else:
        e.let(result, f"num.unsigned({e.ref(source)}).astype(i64)")


@rule("llvm.bitcast")
def _bitcast(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    if isinstance(source.type, PtrType) or source.type == result.type:
        e.let(result, e.ref(source))
        return
    from_count = source.type.count if isinstance(source.type, VectorType) else 0
    to_count = result.type.count if isinstance(result.type, VectorType) else 0
    e.let(
        result,
        f"num.bitcast({e.ref(source)}, {e.dtype(source.type)}, {e.dtype(result.type)}, "
        f"{from_count}, {to_count})",
    )


# Aggregates ------------------------------------------------------------------------------------


@rule("llvm.extractvalue")
def _extractvalue(e: PythonEmitter, op: Op) -> None:
    path = "".join(f"[{i}]" for i in op.integers("position"))
    e.let(op.results[0], e.ref(op.operands[0]) + path)


@rule("llvm.insertvalue")
def _insertvalue(e: PythonEmitter, op: Op) -> None:
    container, value = op.operands
    (result,) = op.results
    path = tuple(op.integers("position"))
    e.let(
        result,
        f"num.insert({e.like(container, result)}, {path}, {e.like(value, result)})",
    )


# Vectors ---------------------------------------------------------------------------------------


@rule("llvm.extractelement")
def _extractelement(e: PythonEmitter, op: Op) -> None:
    extract(e, op.results[0], op.operands[0], [op.operands[1]])


@rule("llvm.insertelement")
def _insertelement(e: PythonEmitter, op: Op) -> None:
    vector, value, position = op.operands
    insert(e, op.results[0], vector, value, [position])


@rule("llvm.shufflevector")
def _shufflevector(e: PythonEmitter, op: Op) -> None:
    shuffle(e, op, op.integers("mask"))


def shuffle(e: PythonEmitter, op: Op, mask: list[int]) -> None:
    """Write the rows of two concatenated vectors that `mask` picks."""
    a, b = (e.like(v, op.results[0]) for v in op.operands)
    picks = [max(i, 0) for i in mask]
    first = op.operands[0].type
    assert isinstance(first, VectorType)
    if max(picks) >= first.shape[0]:
        e.let(op.results[0], f"np.concatenate(({a}, {b}))[{picks}]")
    elif picks == list(range(picks[0], picks[0] + len(picks))):
        e.let(op.results[0], f"{a}[{picks[0]}:{picks[-1] + 1}]")
    else:
        e.let(op.results[0], f"{a}[{picks}]")


def extract(e: PythonEmitter, result: Value, vector: Value, position: list[Value | int]) -> None:
    """Write one element or sub-vector of `vector`, at a static or dynamic position. Raises
    MissingRuleError for a sub-vector at a position that differs between lanes.
    """
    indices, lanes = _indices(e, position)
    whole = isinstance(vector.type, VectorType) and len(position) == len(vector.type.shape)
    if lanes and not isinstance(result.type, VectorType):
        e.let(result, f"{e.lanes(vector)}[{indices}, np.arange(lanes)]")
    elif lanes:
        raise MissingRuleError(e.site, "with a position that differs between lanes")
    elif whole and not e.varying(result):
        e.let(result, f"{e.ref(vector)}[{indices}, 0]")
    else:
        e.let(result, f"{e.ref(vector)}[{indices}]" if indices else e.ref(vector))


def insert(
    e: PythonEmitter, result: Value, vector: Value, value: Value, position: list[Value | int]
) -> None:
    """Write `vector` with one element or sub-vector replaced. Raises as `extract` does."""
    indices, lanes = _indices(e, position)
    if lanes and isinstance(value.type, VectorType):
        raise MissingRuleError(e.site, "with a position that differs between lanes")
    e.let(result, f"{e.like(vector, result)}.copy()")
    if lanes:
        e.line(f"{e.ref(result)}[{indices}, np.arange(lanes)] = {e.ref(value)}")
    else:
        e.line(f"{e.ref(result)}[{indices or '...'}] = {e.ref(value)}")


def _indices(e: PythonEmitter, position: list[Value | int]) -> tuple[str, bool]:
    parts, lanes = [], False
    for item in position:
        if isinstance(item, int):
            parts.append(str(item))
        else:
            lanes = lanes or e.varying(item)
            parts.append(e.ref(item))
    return ", ".join(parts), lanes


# Hints and traps -------------------------------------------------------------------------------


@rule(
    "llvm.intr.assume",
    "llvm.intr.lifetime.start",
    "llvm.intr.lifetime.end",
    "llvm.intr.prefetch",
    "llvm.intr.dbg.value",
    "llvm.intr.dbg.declare",
    "llvm.intr.experimental.noalias.scope.decl",
)
def _nothing(e: PythonEmitter, op: Op) -> None:
    """Nothing to write: lanes see each other's stores at once."""


@rule("llvm.fence")
def _fence(e: PythonEmitter, op: Op) -> None:
    """Only the race check minds."""
    e.globals["barriers"] = barriers
    scope = scope_of(op.attributes.get("syncscope", ""))
    e.line(f"barriers.fence_memory(g, {e.mask}, {scope})")


@rule("llvm.freeze", "llvm.intr.ssa.copy", "llvm.intr.expect")
def _same(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], e.ref(op.operands[0]))


@rule("llvm.intr.trap", "llvm.unreachable", "ub.unreachable")
def _trap(e: PythonEmitter, op: Op) -> None:
    e.globals["checks"] = checks
    e.line(f"checks.check_assert(g, np.False_, {e.mask}, {op.name + ' was reached'!r}, {e.at()})")


@rule("cf.assert")
def _assert(e: PythonEmitter, op: Op) -> None:
    holds = e.ref(op.operands[0])
    message = op.string("msg") if "msg" in op.attributes else ""
    e.globals["checks"] = checks
    if message.startswith("CoordinateError"):
        compared = op.operands[0].defining
        pair = ["None", "None"]
        if compared is not None and compared.name == "arith.cmpi":
            pair = [e.ref(value) for value in compared.operands]
        e.line(f"if {holds} is not g.everybody and not np.all({holds}):")
        arguments = f"{holds}, {pair[0]}, {pair[1]}, {e.mask}, {message!r}, {e.at()}"
        e.line(f"    checks.check_coordinate(g, {arguments})")
        return
    if message.startswith("ZeroDivisionError") and e.poison.divides(op, message):
        return
    arguments = f"{holds}, {e.mask}, {message!r}, {e.at()}"
    test = f"{holds} is not g.everybody and not np.all({holds})"
    e.line(f"if {test}: checks.check_assert(g, {arguments})")


# Intrinsics ------------------------------------------------------------------------------------


@rule("llvm.intr.fshl", "llvm.intr.fshr")
def _funnel(e: PythonEmitter, op: Op) -> None:
    type_ = int_type(op.results[0])
    if not isinstance(type_, IntType) or not type_.native:
        raise MissingRuleError(op.site, f"on {type_}")
    a, b, amount = e.refs(op)
    e.let(op.results[0], f"num.funnel_{op.name[-1]}({a}, {b}, {amount})")


_SATURATING = {
    "llvm.intr.sadd.sat": ("+", True),
    "llvm.intr.ssub.sat": ("-", True),
    "llvm.intr.uadd.sat": ("+", False),
    "llvm.intr.usub.sat": ("-", False),
}


@rule(*_SATURATING)
def _saturating(e: PythonEmitter, op: Op) -> None:
    sign, is_signed = _SATURATING[op.name]
    width = int_type(op.results[0]).width
    if width > 32:
        raise MissingRuleError(op.site, f"on i{width}")
    a, b = e.refs(op)
    if not is_signed:
        a, b = f"num.low_bits({a}, {width})", f"num.low_bits({b}, {width})"
    low = -(1 << (width - 1)) if is_signed else 0
    high = low + (1 << width) - 1
    total = f"np.clip({a}.astype(i64) {sign} {b}.astype(i64), {low}, {high})"
    e.let(op.results[0], truncate(e, total, op.results[0]))
