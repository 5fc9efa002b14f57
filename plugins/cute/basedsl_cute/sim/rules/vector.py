"""Rules of `vector` with static shapes: the lanes are the last axis, so most are NumPy indexing."""

from __future__ import annotations

import numpy as np

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.rules.llvm import extract, insert, shuffle
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import always, rule
from basedsl_cute.sim.translate.types import FloatType, IntType, VectorType, element_type

_DYNAMIC = -(2**63)


def _vector(value: Value) -> VectorType:
    assert isinstance(value.type, VectorType)
    return value.type


def _lane_extent(e: PythonEmitter, value: Value) -> str:
    return "lanes" if e.varying(value) else "1"


def _position(op: Op, dynamic: list[Value]) -> list[Value | int]:
    left = list(dynamic)
    return [left.pop(0) if i == _DYNAMIC else i for i in op.integers("static_position")]


@rule("vector.extract")
def _extract(e: PythonEmitter, op: Op) -> None:
    source, *dynamic = op.operands
    extract(e, op.results[0], source, _position(op, dynamic))


@rule("vector.insert")
def _insert(e: PythonEmitter, op: Op) -> None:
    value, target, *dynamic = op.operands
    insert(e, op.results[0], target, value, _position(op, dynamic))


@rule("vector.extractelement")
def _extractelement(e: PythonEmitter, op: Op) -> None:
    extract(e, op.results[0], op.operands[0], [op.operands[1]])


@rule("vector.insertelement")
def _insertelement(e: PythonEmitter, op: Op) -> None:
    value, target, position = op.operands
    insert(e, op.results[0], target, value, [position])


@rule("vector.broadcast", "vector.splat")
def _broadcast(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    shape = _vector(result).shape
    full = ", ".join(map(str, (*shape, _lane_extent(e, result))))
    e.let(result, f"np.broadcast_to({e.ref(source)}, ({full},))")


@rule("vector.from_elements")
def _from_elements(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    shape = _vector(result).shape
    extent = _lane_extent(e, result)
    flat = e.ref(result)
    e.line(f"{flat} = np.empty(({len(op.operands)}, {extent}), {e.dtype(result.type)})")
    for i, element in enumerate(op.operands):
        e.line(f"{flat}[{i}] = {e.ref(element)}")
    if len(shape) != 1:
        e.let(result, f"{flat}.reshape({(*shape, -1)})")


@rule("vector.to_elements")
def _to_elements(e: PythonEmitter, op: Op) -> None:
    (source,) = op.operands
    flat = e.temporary()
    e.line(f"{flat} = {e.ref(source)}.reshape({len(op.results)}, -1)")
    for i, result in enumerate(op.results):
        e.let(result, f"{flat}[{i}]" if e.varying(result) else f"{flat}[{i}, 0]")


@rule("vector.shape_cast")
def _shape_cast(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    e.let(result, f"{e.ref(op.operands[0])}.reshape({(*_vector(result).shape, -1)})")


@rule("vector.bitcast")
def _bitcast(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    if len(_vector(result).shape) != 1:
        raise MissingRuleError(op.site, "on a vector of several dimensions")
    old, new = str(_vector(source).element), str(_vector(result).element)
    count, made = _vector(source).count, _vector(result).count
    text, kind = e.ref(source), e.dtype(source.type)
    if count != made and (old in _NIBBLES or new in _NIBBLES):
        e.globals["int8"] = np.int8
        if old in _NIBBLES:  # first as bytes
            text, kind, count = f"num.bytes_of_halves({text}, {count})", "int8", count // 2
        if new in _NIBBLES:
            text = f"num.halves_of_bytes(num.bitcast({text}, {kind}, int8, {count}, {made // 2}), "
            text, kind, count = f"{text}{made // 2})", "int8", made
    elif count != made and {old, new} & _SIX_BITS:
        raise MissingRuleError(op.site, f"of {old} as {new}")
    e.let(
        result,
        f"num.bitcast({text}, {kind}, {e.dtype(result.type)}, {count}, {made})",
    )


# Elements with a byte each in the simulator's vectors, in fewer bits elsewhere.
_NIBBLES = frozenset(("i4", "f4E2M1FN"))
_SIX_BITS = frozenset(("f6E2M3FN", "f6E3M2FN"))


@rule("vector.shuffle")
def _shuffle(e: PythonEmitter, op: Op) -> None:
    shuffle(e, op, op.integers("mask"))


@rule("vector.extract_strided_slice")
def _extract_strided(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], f"{e.ref(op.operands[0])}[{_slices(op, op.integers('sizes'))}]")


@rule("vector.insert_strided_slice")
def _insert_strided(e: PythonEmitter, op: Op) -> None:
    value, target = op.operands
    (result,) = op.results
    whole, part = _vector(target).shape, _vector(value).shape
    e.let(result, f"{e.like(target, result)}.copy()")
    sizes = [1] * (len(whole) - len(part)) + list(part)
    strides = [1] * (len(whole) - len(part)) + op.integers("strides")
    e.line(f"{e.ref(result)}[{_slices(op, sizes, strides)}] = {e.ref(value)}")


def _slices(op: Op, sizes: list[int], strides: list[int] | None = None) -> str:
    steps = strides or op.integers("strides")
    parts = [
        f"{start}:{start + (size - 1) * step + 1}:{step}"
        for start, size, step in zip(op.integers("offsets"), sizes, steps, strict=True)
    ]
    return ", ".join(parts)


@rule("vector.transpose")
def _transpose(e: PythonEmitter, op: Op) -> None:
    order = op.integers("permutation")
    e.let(op.results[0], f"{e.ref(op.operands[0])}.transpose({(*order, len(order))})")


@rule("vector.interleave")
def _interleave(e: PythonEmitter, op: Op) -> None:
    a, b = (e.like(v, op.results[0]) for v in op.operands)
    shape = (*_vector(op.results[0]).shape, -1)
    e.let(op.results[0], f"np.stack(({a}, {b}), axis=-2).reshape({shape})")


@rule("vector.deinterleave")
def _deinterleave(e: PythonEmitter, op: Op) -> None:
    for start, result in enumerate(op.results):
        e.let(result, f"{e.ref(op.operands[0])}[..., {start}::2, :]")


@rule("vector.step", uniform=always)
def _step(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    e.let(result, f"np.arange({_vector(result).count}, dtype=i64)[:, None]")


@rule("vector.fma")
def _fma(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], "num.fma({}, {}, {})".format(*e.refs(op)))


@rule("vector.constant_mask", uniform=always)
def _constant_mask(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    mask = e.ref(result)
    e.line(f"{mask} = np.zeros({(*_vector(result).shape, 1)}, bool_)")
    corner = ", ".join(f":{n}" for n in op.integers("mask_dim_sizes"))
    e.line(f"{mask}[{corner}] = True")


@rule("vector.create_mask")
def _create_mask(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    shape = _vector(result).shape
    parts = []
    for axis, (extent, size) in enumerate(zip(shape, op.operands, strict=True)):
        column = (*(-1 if i == axis else 1 for i in range(len(shape))), 1)
        parts.append(f"(np.arange({extent}).reshape{column} < {e.ref(size)})")
    e.let(result, " & ".join(parts))


# Reductions: the expression that combines an accumulator {0} and a row {1}.
_COMBINE = {
    "add": "{0} + {1}",
    "mul": "{0} * {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "minsi": "np.minimum({0}, {1})",
    "maxsi": "np.maximum({0}, {1})",
    "minui": "num.signed(np.minimum(num.unsigned({0}), num.unsigned({1})))",
    "maxui": "num.signed(np.maximum(num.unsigned({0}), num.unsigned({1})))",
    "minimumf": "num.minimum({0}, {1})",
    "maximumf": "num.maximum({0}, {1})",
    "minnumf": "num.minnum({0}, {1})",
    "maxnumf": "num.maxnum({0}, {1})",
}


def _combine(op: Op, kind: str, type_: object) -> str:
    template = _COMBINE.get(kind)
    if template is None:
        raise MissingRuleError(op.site, f"of kind {kind}")
    if isinstance(type_, IntType) and type_.width == 1:
        narrow = {"add": "{0} ^ {1}", "mul": "{0} & {1}"}
        return narrow.get(kind, template)
    if isinstance(type_, IntType) and not type_.native:
        raise MissingRuleError(op.site, f"on {type_}")
    return template


@rule("vector.reduction")
def _reduction(e: PythonEmitter, op: Op) -> None:
    """Combine the elements in order, starting from the accumulator: bit for bit what LLVM's ordered
    reduction gives.
    """
    source, *start = op.operands
    (result,) = op.results
    template = _combine(op, op.word("kind"), element_type(source.type))
    _fold(e, result, source, template, e.ref(start[0]) if start else None)


def _fold(e: PythonEmitter, result: Value, source: Value, template: str, start: str | None) -> None:
    """Write a loop that combines the rows of a one-dimensional vector, in order."""
    total, row = e.ref(result), e.temporary()
    rows = f"list({e.ref(source)})" if e.varying(source) else f"list({e.ref(source)}[:, 0])"
    if start is None:
        e.line(f"{total}, *{row}s = {rows}")
    else:
        e.line(f"{total}, {row}s = {start}, {rows}")
    with e.indented(f"for {row} in {row}s:"):
        e.line(f"{total} = {template.format(total, row)}")


@rule("vector.multi_reduction")
def _multi_reduction(e: PythonEmitter, op: Op) -> None:
    """Combine the elements along some dimensions, in row-major order."""
    source, start = op.operands
    (result,) = op.results
    shape = _vector(source).shape
    axes = op.integers("reduction_dims")
    kept = [i for i in range(len(shape)) if i not in axes]
    template = _combine(op, op.word("kind"), element_type(source.type))
    count = 1
    for axis in axes:
        count *= shape[axis]
    rows, row, total = e.temporary(), e.temporary(), e.ref(result)
    order = (*axes, *kept, len(shape))
    flat = (count, *(shape[i] for i in kept), -1)
    e.line(f"{rows} = {e.ref(source)}.transpose({order}).reshape({flat})")
    if not kept and not e.varying(result):
        e.line(f"{rows} = {rows}[:, 0]")
    e.line(f"{total} = {e.ref(start)}")
    with e.indented(f"for {row} in {rows}:"):
        e.line(f"{total} = {template.format(total, row)}")


_LLVM_REDUCE = {
    "add": "add",
    "mul": "mul",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "smin": "minsi",
    "smax": "maxsi",
    "umin": "minui",
    "umax": "maxui",
    "fmin": "minnumf",
    "fmax": "maxnumf",
    "fminimum": "minimumf",
    "fmaximum": "maximumf",
}


@rule(*(f"llvm.intr.vector.reduce.{name}" for name in _LLVM_REDUCE))
def _llvm_reduce(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    kind = _LLVM_REDUCE[op.name.rsplit(".", 1)[1]]
    _fold(e, result, source, _combine(op, kind, element_type(source.type)), None)


@rule("llvm.intr.vector.reduce.fadd", "llvm.intr.vector.reduce.fmul")
def _llvm_reduce_float(e: PythonEmitter, op: Op) -> None:
    start, source = op.operands
    assert isinstance(element_type(source.type), FloatType)
    sign = "+" if op.name.endswith("fadd") else "*"
    _fold(e, op.results[0], source, f"{{0}} {sign} {{1}}", e.ref(start))
