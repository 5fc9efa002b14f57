"""Assertions: a failing one in native code becomes a Python exception at the user's line.

`cf.assert` lowers to a call of `puts` and one of `abort`, which would end the user's process. The
pass here makes it a call of `basedsl_assertion_failed(where)` and a return; after the call,
`raise_failed_assertion` raises the exception that was recorded in this thread.
"""

from __future__ import annotations

import ctypes
import json
import threading
from typing import Any

from basedsl.errors import CompilerBug, DSLRuntimeError
from basedsl.location import Span
from basedsl.objectstage import native
from basedsl.objectstage.failure import span_of_location
from basedsl.objectstage.pipeline import PipelineContext
from basedsl.objectstage.snapshot import Snapshot
from basedsl.tracing import raised

SYMBOL = "basedsl_assertion_failed"
SEPARATOR = "\x1f"
FIELDS = 6  # of the place, in front of the message


class DSLAssertionError(DSLRuntimeError, AssertionError):
    """An `assert` of a compiled function did not hold."""


_state = threading.local()

# The number of failures not raised yet, in all threads: a call looks only if it is not 0.
FAILED_ASSERTIONS = ctypes.c_int64(0)
_failures_lock = threading.Lock()


def _on_failure(where: bytes | None) -> None:
    # The first failure is the one that Python would have met.
    if getattr(_state, "failed", None) is None:
        with _failures_lock:
            FAILED_ASSERTIONS.value += 1
        _state.failed = where or b""


_callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_on_failure)
native.provide_symbol(SYMBOL, ctypes.cast(_callback, ctypes.c_void_p).value or 0)


def _on_values(first: int, second: int) -> None:
    if getattr(_state, "failed", None) is None:
        _state.values = first, second


_values_callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(_on_values)
native.provide_symbol(
    raised.VALUES_SYMBOL, ctypes.cast(_values_callback, ctypes.c_void_p).value or 0
)


def record_failure(where: bytes, values: tuple[int, ...]) -> None:
    """Record what code that keeps failures itself has kept, for `raise_failed_assertion`."""
    if getattr(_state, "failed", None) is None:
        _state.values = values
    _on_failure(where)


def can_fail(object_bytes: bytes) -> bool:
    """Return True if native code has assertions, so that `raise_failed_assertion` must follow a
    call.
    """
    return SYMBOL.encode() in object_bytes


def raise_failed_assertion() -> None:
    """Raise the assertion that failed in this thread since the last call, if one did.

    `DSLAssertionError`, or the exception that the message names (`basedsl.tracing.raised`): a
    builtin, as in `"ZeroDivisionError: division by zero"`, is mixed with `DSLRuntimeError`.
    """
    where = getattr(_state, "failed", None)
    if where is None:
        return
    _state.failed = None
    with _failures_lock:
        FAILED_ASSERTIONS.value -= 1
    filename, line, col, end_line, end_col, calls, message = where.decode(
        errors="surrogateescape"
    ).split(SEPARATOR, FIELDS)
    span = None
    if filename:
        known_end = end_col != ""
        span = Span(
            filename,
            int(line),
            int(col),
            int(end_line) if known_end else None,
            int(end_col) if known_end else None,
            tuple(Span(*caller) for caller in json.loads(calls)),
        )
    for i, value in enumerate(getattr(_state, "values", ())):
        message = message.replace(f"{{{i}}}", str(value))
    _state.values = ()
    name, _, rest = message.partition(": ")
    if name in _PYTHON_ERRORS:
        raise _PYTHON_ERRORS[name](rest or name, span)
    error = raised.error_of(message, span)
    if error is not None:
        raise error
    raise DSLAssertionError(message or "assertion failed", span)


class DSLZeroDivisionError(DSLRuntimeError, ZeroDivisionError):
    """A division by zero in a compiled function."""


class DSLIndexError(DSLRuntimeError, IndexError):
    """An index out of range in a compiled function."""


class DSLValueError(DSLRuntimeError, ValueError):
    """A value that an operation of a compiled function cannot use."""


class DSLOverflowError(DSLRuntimeError, OverflowError):
    """A result that its type cannot hold, where the compiled function checks."""


_PYTHON_ERRORS: dict[str, type[DSLRuntimeError]] = {
    "AssertionError": DSLAssertionError,
    "ZeroDivisionError": DSLZeroDivisionError,
    "IndexError": DSLIndexError,
    "ValueError": DSLValueError,
    "OverflowError": DSLOverflowError,
}


def report_failures(op: Any, context: PipelineContext) -> Snapshot | None:
    """The pass over the LLVM dialect: `puts(message); abort(); unreachable` -> report and return
    zeros.

    The function that fails returns zeros to its caller at once. Only an entry function (or code
    inlined into it) may therefore assert: CompilerBug if a function that can fail is called from
    another one, other than by the C-interface wrapper that returns its result.
    """
    if not context.may_contain("llvm.unreachable"):
        return context.input
    ir, llvm = context.bindings.ir, context.bindings.llvm
    found = _named(ir, op, "llvm.unreachable", "llvm.call")
    tails = _failing_tails(ir, found["llvm.unreachable"])
    if not tails:
        return context.input
    _refuse_callers(ir, found["llvm.call"], {_name_of(ir, tail[-1].parent) for tail in tails})
    body = op.regions[0].blocks[0]
    messages: dict[bytes, str] = {}
    table = ir.SymbolTable(op)
    with ir.InsertionPoint.at_block_begin(body), ir.Location.unknown():
        _insert(ir, f"llvm.func @{SYMBOL}(!llvm.ptr)")
    for say, abort, unreachable in tails:
        where = _where(ir, table, say)
        if where not in messages:
            messages[where] = f"basedsl_assertion_{len(messages)}"
            with ir.InsertionPoint.at_block_begin(body), ir.Location.unknown():
                _insert(ir, _constant(messages[where], where))
        with ir.InsertionPoint(unreachable), say.location:
            _report(ir, llvm, messages[where])
            _return_zeros(ir, _function_type(ir, unreachable.parent).return_type)
        for one in (unreachable, abort, say):
            one.erase()
    return None


def _report(ir: Any, llvm: Any, message: str) -> None:
    create = ir.Operation.create
    named = {"global_name": ir.FlatSymbolRefAttr.get(message)}
    address = create("llvm.mlir.addressof", results=[llvm.PointerType.get()], attributes=named)
    attributes = {
        "callee": ir.FlatSymbolRefAttr.get(SYMBOL),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
    }
    create("llvm.call", operands=[address.result], attributes=attributes)


def _return_zeros(ir: Any, kind: Any) -> None:
    create = ir.Operation.create
    values = [] if str(kind) == "!llvm.void" else [create("llvm.mlir.zero", results=[kind]).result]
    create("llvm.return", operands=values)


def _failing_tails(ir: Any, ends: list[Any]) -> list[tuple[Any, Any, Any]]:
    """Return the last three operations of each block that a lowered assertion ends in."""
    found: list[tuple[Any, Any, Any]] = []
    for unreachable in ends:
        last = list(unreachable.block.operations)[-3:]
        calls = [_callee(ir, one) for one in last[:-1]]
        if calls == ["puts", "abort"]:
            say, abort, end = (one.operation for one in last)
            found.append((say, abort, end))
    return found


def _refuse_callers(ir: Any, calls: list[Any], can_fail: set[str]) -> None:
    for call in calls:
        callee, caller = _callee(ir, call), _name_of(ir, call.parent)
        if callee in can_fail and caller != f"_mlir_ciface_{callee}":
            raise CompilerBug(
                f"{callee}, which asserts, is called by {caller}: a failed assertion would not "
                "stop the caller",
                span_of_location(call.location),
                hint="inline it",
            )


def _named(ir: Any, op: Any, *names: str) -> dict[str, list[Any]]:
    """Return the operations of these names in `op`, except those for other machines."""
    found: dict[str, list[Any]] = {name: [] for name in names}
    advance, skip = ir.WalkResult.ADVANCE, ir.WalkResult.SKIP

    def visit(inner: Any) -> Any:
        name = inner.name
        if name in found:
            found[name].append(inner)
        return skip if name == "gpu.module" else advance

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _where(ir: Any, table: Any, say: Any) -> bytes:
    """Return location and message of the assertion of this `puts`, zero-terminated."""
    address = say.operands[0].owner
    while address.name != "llvm.mlir.addressof":
        address = address.operands[0].owner
    name = ir.FlatSymbolRefAttr(address.attributes["global_name"]).value
    message = _text_of(ir, table[name])
    span = span_of_location(say.location)
    place: list[object] = ["", "", "", "", "", "[]"]
    if span is not None:
        calls = json.dumps([(one.filename, one.line, one.col) for one in span.callers])
        place = [span.filename, span.line, span.col, span.end_line or "", span.end_col or "", calls]
        if span.end_col is None:
            place[3] = ""
    return (SEPARATOR.join(map(str, [*place, message])) + "\0").encode(errors="surrogateescape")


def _text_of(ir: Any, constant: Any) -> str:
    value = constant.attributes["value"]
    if isinstance(value, ir.StringAttr):
        raw = value.value_bytes
    else:
        raw = bytes(int(byte) & 255 for byte in ir.DenseIntElementsAttr(value))
    text: str = raw.rstrip(b"\0").decode(errors="replace")
    return text


def _callee(ir: Any, call: Any) -> str:
    attributes = call.operation.attributes
    if "callee" not in attributes:
        return ""
    name: str = ir.FlatSymbolRefAttr(attributes["callee"]).value
    return name


def _name_of(ir: Any, function: Any) -> str:
    name: str = ir.StringAttr(function.operation.attributes["sym_name"]).value
    return name


def _function_type(ir: Any, function: Any) -> Any:
    return ir.TypeAttr(function.operation.attributes["function_type"]).value


def _constant(name: str, data: bytes) -> str:
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return (
        f'llvm.mlir.global private constant @{name}("{escaped}") {{addr_space = 0 : i32}}'
        f" : !llvm.array<{len(data)} x i8>"
    )


def _insert(ir: Any, text: str) -> None:
    ir.InsertionPoint.current.insert(ir.Operation.parse(text))
