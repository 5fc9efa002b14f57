"""The dialect modules of `_mlir.dialects`: those of MLIR's Python bindings, with three additions.

A builder takes numbers, vectors and pointers of cute where it takes SSA values; without `loc` it
gives the operation the location of the user's line; and it takes the arguments that builders of
other MLIR versions have (`_ADAPTED`). Everything else, such as types, attributes, enumerations and
operation classes, is the bindings' own object.
"""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from basedsl import DSLError, Numeric, Trace, current_trace, current_trace_or_none
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.hardware.unsupported import NotOffered
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor_ssa import TensorSSA

DIALECTS = ("arith", "builtin", "cf", "func", "gpu", "llvm", "math", "nvvm", "scf", "vector")
#: Dialects of CuTe's own DSL, whose operations the functions of `cute` emit in their own way.
CLOSED = ("cute", "cute_nvgpu", "cutlass", "lir", "core", "cuda")


def register_dialects(package: str) -> None:
    """Register the modules of all dialects below `package`."""
    parent = sys.modules[package]
    for name in DIALECTS:
        module = _Dialect(f"{package}.{name}", name)
        sys.modules[module.__name__] = module
        setattr(parent, name, module)
    for name in CLOSED:
        closed = _Closed(f"{package}.{name}", name)
        sys.modules[closed.__name__] = closed
        setattr(parent, name, closed)


def as_ir_value(value: Any) -> Any:
    """The SSA value of a number, a vector or a pointer; sequences element by element, and anything
    else as it is.
    """
    if isinstance(value, Numeric | TensorSSA):
        return value.ir_value()
    if isinstance(value, Pointer):
        return value.llvm_ptr
    if type(value) in (list, tuple):
        return type(value)(map(as_ir_value, value))
    return value


class _Closed(types.ModuleType):
    """A dialect that is not there: its names can be imported, and any use is an error."""

    def __init__(self, name: str, dialect: str) -> None:
        super().__init__(name)
        self._dialect = dialect

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return NotOffered(
            f"{name} is of the MLIR dialect '{self._dialect}' of CuTe's own DSL: not offered",
            "the functions of cute, cute.arch and cute.nvgpu emit what is needed",
        )


class _Dialect(types.ModuleType):
    """The module of one dialect."""

    def __init__(self, name: str, dialect: str) -> None:
        super().__init__(name)
        self._dialect = dialect
        self._found: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        if name in self._found:
            return self._found[name]
        path = f"{self._dialect}.{name}"
        found: Any = _OTHERS.get(path)
        if path in _ADAPTED:
            found = _converting(_ADAPTED[path])
        elif found is not None:
            pass
        else:
            found = getattr(getattr(CUTE.mlir.bindings, self._dialect), name)
            if inspect.isfunction(found):
                found = _converting(found)
        # No attribute of the module: that would be a change to what a program reads.
        return self._found.setdefault(name, found)


def _converting(build: Callable[..., Any]) -> Callable[..., Any]:
    takes = inspect.signature(build).parameters

    @functools.wraps(build)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace_or_none()
        if trace is not None and "loc" in takes and kwargs.get("loc") is None:
            kwargs["loc"] = trace.loc()
        if kwargs.get("ip", 0) is None:
            del kwargs["ip"]
        return build(
            *map(as_ir_value, args), **{name: as_ir_value(x) for name, x in kwargs.items()}
        )

    return call


# Builders of other versions ----------------------------------------------------------------------

_ADAPTED: dict[str, Callable[..., Any]] = {}


def _adapts(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(build: Callable[..., Any]) -> Callable[..., Any]:
        _ADAPTED[name] = build
        return build

    return register


def _trace(name: str) -> Trace:
    return current_trace(f"{name}()")


def _emit(name: str, results: Any, operands: Any, loc: Any, ip: Any, **attributes: Any) -> Any:
    trace = _trace(name)
    kept = {key: value for key, value in attributes.items() if value is not None}
    made = trace.ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=kept, loc=loc, ip=ip
    )
    return made.result if len(made.results) == 1 else made


def _values(args: tuple[Any, ...]) -> list[Any]:
    """The arguments without a result type in front, which some versions take."""
    ir = CUTE.mlir.bindings.ir
    return [x for x in args if x is not None and not isinstance(x, ir.Type)]


def _type_in(args: tuple[Any, ...]) -> Any:
    ir = CUTE.mlir.bindings.ir
    return next((x for x in args if isinstance(x, ir.Type)), None)


def _extremum(name: str, ordered: str, with_nan: str) -> None:
    @_adapts(f"nvvm.{name}")
    def build(
        *args: Any,
        a: Any = None,
        b: Any = None,
        c: Any = None,
        res: Any = None,
        nan: bool = False,
        loc: Any = None,
        ip: Any = None,
        **flags: Any,
    ) -> Any:
        _refuse_flags(f"nvvm.{name}", flags)
        operation = with_nan if nan else ordered
        first, *others = [*_values(args), *_values((a, b, c))]
        for other in others:
            first = _emit(operation, [first.type], [first, other], loc, ip)
        return first


_extremum("fmin", "arith.minnumf", "arith.minimumf")
_extremum("fmax", "arith.maxnumf", "arith.maximumf")


def _refuse_flags(name: str, flags: dict[str, Any]) -> None:
    set_flags = [key for key, value in flags.items() if value not in (None, False)]
    if set_flags:
        raise DSLError(f"{name}() has no argument {', '.join(set_flags)}")


@_adapts("nvvm.elect_sync")
def _elect_sync(
    *args: Any,
    pred: Any = None,
    membermask: Any = None,
    results: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    i1 = _trace("nvvm.elect_sync").ir.IntegerType.get_signless(1)
    mask = [x for x in (*_values(args), membermask) if x is not None]
    return _emit("nvvm.elect.sync", [i1], mask, loc, ip)


def _try_wait(addr: Any, phase: Any, ticks: Any, loc: Any, ip: Any) -> Any:
    """A test of an mbarrier's phase that waits for at most `ticks` nanoseconds."""
    ir = _trace("nvvm.mbarrier_try_wait_parity").ir
    i1 = ir.IntegerType.get_signless(1)
    operands = [addr, phase] if ticks is None else [addr, phase, ticks]
    return _emit("nvvm.mbarrier.try_wait", [i1], operands, loc, ip)


@_adapts("nvvm.mbarrier_try_wait_parity_timelimit")
def _try_wait_timelimit(
    *args: Any,
    addr: Any = None,
    phase: Any = None,
    ticks: Any = None,
    time_limit: Any = None,
    res: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    operands = [*_values(args), *_values((addr, phase, ticks, time_limit))]
    at, parity, *limit = operands
    return _try_wait(at, parity, limit[0] if limit else None, loc, ip)


@_adapts("nvvm.mbarrier_wait_parity")
def _wait_parity(*args: Any, loc: Any = None, ip: Any = None, **named: Any) -> Any:
    at, parity, *_ = [*_values(args), *named.values()]
    return _try_wait(at, parity, None, loc, ip)


@_adapts("nvvm.atomicrmw")
def _atomicrmw(
    *args: Any,
    res: Any = None,
    op: Any = None,
    ptr: Any = None,
    a: Any = None,
    mem_order: Any = None,
    syncscope: Any = None,
    loc: Any = None,
    ip: Any = None,
    **flags: Any,
) -> Any:
    """PTX `atom`, with the operations that `llvm.atomicrmw` has."""
    _refuse_flags("nvvm.atomicrmw", flags)
    given = _values(args)
    if op is None:
        op = given.pop(0)
    ptr = given.pop(0) if ptr is None else ptr
    a = given.pop(0) if a is None else a
    llvm = CUTE.mlir.bindings.llvm
    kind = _ATOMICS.get(getattr(op, "name", str(op)))
    if kind is None:
        raise DSLError(f"nvvm.atomicrmw() has no operation {op}")
    is_float = not hasattr(a.type, "is_signless")
    if is_float:
        kind = {"add": "fadd", "max": "fmax", "min": "fmin"}.get(kind, kind)
    return llvm.atomicrmw(
        getattr(llvm.AtomicBinOp, kind),
        ptr,
        a,
        llvm.AtomicOrdering.monotonic,
        syncscope="device" if syncscope is None else str(syncscope),
        loc=loc,
        ip=ip,
    )


_ATOMICS = {
    "ADD": "add", "AND": "_and", "OR": "_or", "XOR": "_xor", "MAX": "max", "MIN": "min",
    "UMAX": "umax", "UMIN": "umin", "EXCH": "xchg", "INC": "uinc_wrap", "DEC": "udec_wrap",
    "FADD": "fadd",
}  # fmt: skip


class _Names(type):
    """A class whose attributes are members that carry only their name."""

    def __getattr__(cls, name: str) -> Any:
        if name not in _ATOMICS:
            raise AttributeError(name)
        return types.SimpleNamespace(name=name)


class _AtomicOpKind(metaclass=_Names):
    """The operations of `nvvm.atomicrmw`."""


def _packed(name: str, operation: str) -> None:
    @_adapts(f"nvvm.{name}_packed_f32x2")
    def build(*args: Any, rnd: Any = None, loc: Any = None, ip: Any = None, **flags: Any) -> Any:
        if rnd is not None and str(rnd).rpartition(".")[2].lower() not in ("none", "rn"):
            raise DSLError(
                f"nvvm.{name}_packed_f32x2() rounds to nearest, not by {rnd}",
                hint=f"cute.arch.{name}_packed_f32x2(a, b, rnd=) rounds in a direction",
            )
        _refuse_flags(f"nvvm.{name}_packed_f32x2", flags)
        operands = _values(args)
        return _emit(operation, [operands[0].type], operands, loc, ip)


for _name, _operation in (("add", "addf"), ("sub", "subf"), ("mul", "mulf")):
    _packed(_name, f"arith.{_operation}")
_packed("fma", "math.fma")


@_adapts("vector.extract")
def _extract(
    source: Any,
    dynamic_position: Any = (),
    static_position: Any = (),
    *,
    results: Any = None,
    result: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    vector = CUTE.mlir.bindings.vector
    return vector.extract(source, list(dynamic_position), list(static_position), loc=loc, ip=ip)


@_adapts("vector.extractelement")
def _extractelement(
    vector: Any, *, position: Any = None, results: Any = None, loc: Any = None, ip: Any = None
) -> Any:
    return _at(vector, position, loc, ip)


@_adapts("vector.splat")
def _splat(aggregate: Any, input: Any, *, loc: Any = None, ip: Any = None) -> Any:
    return CUTE.mlir.bindings.vector.broadcast(aggregate, input, loc=loc, ip=ip)


def _at(source: Any, position: Any, loc: Any, ip: Any) -> Any:
    trace = _trace("vector.extractelement")
    vector = CUTE.mlir.bindings.vector
    if isinstance(position, int):
        return vector.extract(source, [], [position], loc=loc, ip=ip)
    index = trace.ir.IndexType.get()
    if position.type != index:
        position = _emit("arith.index_cast", [index], [position], loc, ip)
    minimum = trace.ir.ShapedType.get_dynamic_size()
    return vector.extract(source, [position], [minimum], loc=loc, ip=ip)


@_adapts("llvm.inline_asm")
def _inline_asm(
    res: Any,
    operands_: Any,
    asm_string: str,
    constraints: str,
    *,
    has_side_effects: bool = False,
    is_align_stack: bool = False,
    asm_dialect: Any = None,
    tail_call_kind: Any = None,
    operand_attrs: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    ir = CUTE.mlir.bindings.ir
    made = ir.Operation.create(
        "llvm.inline_asm",
        results=[] if res is None else [res],
        operands=list(operands_),
        attributes={
            "asm_string": ir.StringAttr.get(asm_string),
            "constraints": ir.StringAttr.get(constraints),
            **({"has_side_effects": ir.UnitAttr.get()} if has_side_effects else {}),
        },
        loc=loc,
        ip=ip,
    )
    return made if res is None else made.result


@_adapts("llvm.mlir_constant")
def _llvm_constant(*args: Any, loc: Any = None, ip: Any = None, **named: Any) -> Any:
    """Both `(value)` and `(type, value)`."""
    ir = CUTE.mlir.bindings.ir
    kind = named.get("res") or _type_in(args)
    (value,) = [x for x in (*args, *named.values()) if not isinstance(x, ir.Type)]
    kind = value.type if kind is None else kind
    return _emit("llvm.mlir.constant", [kind], [], loc, ip, value=value)


@_adapts("arith.constant")
def _arith_constant(*args: Any, loc: Any = None, ip: Any = None, **named: Any) -> Any:
    """`(type, value)`, `(value, type)` and `(attribute)`."""
    bindings = CUTE.mlir.bindings
    given = [*args, *named.values()]
    kind = _type_in(tuple(given))
    (value,) = [x for x in given if x is not None and not isinstance(x, bindings.ir.Type)]
    kind = value.type if kind is None else kind
    return bindings.arith.constant(kind, value, loc=loc, ip=ip)


# Names that are no builders, looked up in the same way.
_OTHERS: dict[str, Any] = {
    "nvvm.AtomicOpKind": _AtomicOpKind,
    "nvvm.RoundingModeKind": enum.StrEnum("RoundingModeKind", ["RN", "RZ", "RM", "RP"]),
}
