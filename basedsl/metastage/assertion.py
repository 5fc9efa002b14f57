"""Assertions in native code whose message shows two numbers known at run time."""

from __future__ import annotations

from typing import Any

from basedsl.mlir import new_function
from basedsl.numeric import Int64, Numeric, logical_not
from basedsl.tracing import Trace
from basedsl.tracing.raised import VALUES_SYMBOL


def assert_showing(trace: Trace, holds: Numeric, message: str, first: Any, second: Any) -> None:
    """Emit an assertion of `holds`, a Boolean of run time, into `trace`. In `message`, `{0}` and
    `{1}` become the integers `first` and `second`: Python ints, or numbers of run time.
    """
    loc = trace.loc()
    numbers = [Int64(n) if isinstance(n, int) else n.to(Int64) for n in (first, second)]

    def tell() -> None:
        operands = [number.ir_value() for number in numbers]
        callee = trace.ir.FlatSymbolRefAttr.get(VALUES_SYMBOL)
        create = trace.ir.Operation.create
        trace.emit(create, "func.call", operands=operands, attributes={"callee": callee})

    _declare(trace)
    trace.emitter.if_(
        logical_not(holds).ir_value(), tell, lambda: None, lambda a, b: (list, list), loc
    )
    trace.emitter.assert_(holds.ir_value(), message, loc)


def _declare(trace: Trace) -> None:
    if VALUES_SYMBOL in trace.declared:
        return
    trace.declared.add(VALUES_SYMBOL)
    ir = trace.ir
    op = ir.InsertionPoint.current.block.owner
    while op.operation.parent is not None:
        op = op.operation.parent
    i64 = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint.at_block_begin(op.operation.regions[0].blocks[0]):
        new_function(ir, VALUES_SYMBOL, [i64, i64], body=False)
