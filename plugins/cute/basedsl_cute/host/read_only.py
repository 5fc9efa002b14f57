"""A check of traced code: nothing is written through an argument that is read-only.

Arrays of JAX are immutable, those of NumPy may be: their memory must not change behind the backs of
those who share it. `memory_of` follows their addresses through views, arithmetic, branches, loops,
launches and tensor maps to what writes. What functions of others do with a pointer is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from basedsl import DSLTypeError, Trace, span_of_location
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.hardware.tensor_map_format import ENCODE_SYMBOL

# The place, among the operands, of the memory that an operation writes.
_WRITTEN = {
    "cute.store": 1,
    "cute.copy": 1,
    "cute.atomic_rmw": 1,
    "cute.atomic_cas": 2,
    "llvm.store": 1,
    "llvm.atomicrmw": 0,
    "llvm.cmpxchg": 0,
    "nvvm.atomicrmw": 0,
    "nvvm.cp.async.bulk.global.shared.cta": 0,
    "nvvm.cp.async.bulk.tensor.global.shared.cta": 0,
    "nvvm.cp.async.bulk.tensor.reduce": 0,
}
# Operations whose result is an address in, or a view of, the memory of the first operand.
_VIEWS = frozenset((
    "arith.extsi", "arith.extui", "arith.index_cast", "arith.trunci",
    "builtin.unrealized_conversion_cast", "cute.iterator", "cute.make_memref", "cute.recast",
    "cute.view", "llvm.addrspacecast", "llvm.bitcast", "llvm.getelementptr", "llvm.inttoptr",
    "llvm.ptrtoint",
))  # fmt: skip
# Arithmetic with addresses; the difference of two is a distance, and no address.
_ARITHMETIC = frozenset(("arith.addi", "arith.select", "arith.subi"))
# Where the values begin that a region passes on: by operation, the first operand that is one, and
# the first argument of a block.
_CARRIED = {"scf.for": (3, 1), "scf.while": (0, 0)}
_ADDRESS_OF_MAP, _ADDRESS_IN_MAP = 0, 3  # operands of the call that encodes a tensor map
# PTX ISA 9.7.9 and 9.7.13: instructions that write global memory, up to the address in brackets.
_PTX_WRITE = re.compile(
    r"(?:^|[\s{;])(?:(?:multimem\.)?(?:st|red)\b(?!\.(?:shared|local|async))[^;\[]*"
    r"|(?:multimem\.)?atom\b(?!\.shared)[^;\[]*"
    r"|cp\.(?:reduce\.)?async\.bulk(?:\.tensor\.\dd)?\.global[^;\[]*)\[\s*([^\]\s,+]+)"
)
_HINT = (
    "pass an array that may be written; of JAX arrays cute.jax.jax_callable makes new outputs, and "
    "cute.jax.donate(x) gives one away to be written"
)


def check_read_only(trace: Trace) -> None:
    """Raise DSLTypeError for a write through an argument whose array is read-only."""
    record = cute_trace(trace)
    if not record.read_only:
        return
    operations = list(_operations(trace.module.operation))
    known = memory_of(record.read_only, record.kernel_operands, operations)
    for op in operations:
        for value in _written(op, known):
            raise DSLTypeError(
                f"'{known[value]}' is written, and its array is read-only",
                span_of_location(op.location),
                hint=_HINT,
            )


def memory_of(
    begin: Sequence[tuple[Any, str]], launches: Sequence[tuple[Any, Any]], operations: Sequence[Any]
) -> dict[Any, str]:
    """Return the values of the IR that are addresses in the memory of arguments, with the names of
    these. `begin` are the arguments' own values, `launches` the parameters of kernels with what is
    passed.
    """
    known: dict[Any, str] = dict(begin)
    before = -1
    while len(known) != before:  # loops carry addresses backwards
        before = len(known)
        for parameter, operand in launches:
            _same(known, operand, parameter)
        for op in operations:
            _follow(op, known)
    return known


def _follow(op: Any, known: dict[Any, str]) -> None:
    """Add what an operation makes of known values."""
    name = op.name
    if name in _VIEWS:
        _same(known, op.operands[0], op.results[0])
    elif name in _ARITHMETIC:
        if name != "arith.subi" or op.operands[1] not in known:
            for operand in op.operands:
                _same(known, operand, op.results[0])
    elif name in _CARRIED:
        first, argument = _CARRIED[name]
        for i, operand in enumerate(list(op.operands)[first:]):
            _same(known, operand, op.regions[0].blocks[0].arguments[argument + i])
            if name == "scf.for":
                _same(known, operand, op.results[i])
    elif name in ("scf.yield", "scf.condition"):
        _leave_region(op, known)
    elif name == "llvm.call" or name == "func.call":
        operands = list(op.operands)
        if ENCODE_SYMBOL in str(op.attributes["callee"]):
            _same(known, operands[_ADDRESS_IN_MAP], operands[_ADDRESS_OF_MAP])


def _leave_region(op: Any, known: dict[Any, str]) -> None:
    """Follow the values at the end of a region into the parent's results and the next region."""
    parent = op.parent
    values = list(op.operands)
    blocks = [block for region in parent.regions for block in region]
    into: Sequence[Any] = parent.results
    also: Sequence[Any] = ()
    if op.name == "scf.condition":
        values, also = values[1:], blocks[1].arguments
    elif parent.name == "scf.while":  # the end of its body goes to the condition
        into = blocks[0].arguments
    elif parent.name == "scf.for":
        also = list(blocks[0].arguments)[1:]
    for targets in (into, also):
        for value, target in zip(values, targets, strict=False):
            _same(known, value, target)


def _same(known: dict[Any, str], value: Any, other: Any) -> None:
    name = known.get(value)
    if name is not None:
        known.setdefault(other, name)


def _written(op: Any, known: dict[Any, str]) -> Iterator[Any]:
    """The known values through whose addresses an operation writes."""
    place = _WRITTEN.get(op.name)
    if place is not None:
        value = op.operands[place]
        if value in known:
            yield value
    elif op.name == "llvm.inline_asm":
        text = str(op.attributes["asm_string"].value)
        operands = list(op.operands)
        outputs = str(op.attributes["constraints"].value).count("=")
        for address in _PTX_WRITE.findall(text):
            # A register of the text's own may have been computed from any of them.
            number = int(address[1:]) - outputs if re.fullmatch(r"\$\d+", address) else None
            given = operands if number is None else operands[number : number + 1]
            pointers = [value for value in given if str(value.type) in ("i64", "!llvm.ptr<1>")]
            if pointers and all(value in known for value in pointers):
                yield pointers[0]


def _operations(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from _operations(inner.operation)
