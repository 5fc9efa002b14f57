"""Places where the simulator's debugger may stop: `breakpoint()` in a kernel, and its other lines.

A kernel whose code names `breakpoint`, or whose file a debugger steps through, is traced with a
*debug point* before each of its lines: a `gpu.printf` that prints nothing, whose operands are the
variables of run time and whose attribute says which function has which. On a GPU `breakpoint()`
stops Python while it traces the kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from basedsl import Numeric, current_trace, is_dynamic
from basedsl_cute import algebra
from basedsl_cute.dialect.attributes import DEBUG_ATTRIBUTE
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.tensor_ssa import TensorSSA
from basedsl_cute.tensors.vector_ops import to_elements

_MOST_ELEMENTS = 64  # of a vector of registers
_SKIPPED = (types.ModuleType, types.FunctionType, type)


class Watched:
    """The files whose kernels get debug points without a `breakpoint()`, a choice of the debugger:
    `chosen` is True for the name of such a file.
    """

    chosen: Callable[[str], bool] | None = None


def has_breakpoint(code: types.CodeType) -> bool:
    """True if a function's code, or that of a function in it, names `breakpoint`."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return "breakpoint" in code.co_names or any(map(has_breakpoint, inner))


@contextlib.contextmanager
def debug_points(fn: Any, on_simulator: bool) -> Iterator[None]:
    """Trace the kernel `fn` inside, with debug points on the simulator if it has a `breakpoint()`.

    Elsewhere `breakpoint()` stops Python, and a line on stderr says that it does so while tracing.
    """
    filename = fn.__code__.co_filename
    watched = on_simulator and Watched.chosen is not None and Watched.chosen(filename)
    off = os.environ.get("PYTHONBREAKPOINT") == "0"
    if not watched and (off or not has_breakpoint(fn.__code__)):
        yield
        return
    hook, tracer = sys.breakpointhook, sys.gettrace()
    outside = sys._getframe(2)  # past contextlib's: host code, whose values no kernel can read

    def stop(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if off:
            return None
        if on_simulator:
            _emit(frame, filename, outside, True)
            return None
        print(
            f"breakpoint() in the kernel {fn.__name__}: stopped while tracing it for a GPU, before "
            "anything runs. The simulator (CUTE_DSL_ARCH=sim) stops while it runs",
            file=sys.stderr,
        )
        if hook is sys.__breakpointhook__:
            import pdb  # here, since few programs stop while tracing

            return pdb.Pdb().set_trace(frame)
        return hook(*args, **kwargs)

    def lines(frame: types.FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != filename:
            return None
        if event == "line":
            sys.settrace(None)
            try:
                _emit(frame, filename, outside, False)
            finally:
                sys.settrace(lines)
        return lines

    sys.breakpointhook = stop
    if on_simulator:
        sys.settrace(lines)
    try:
        yield
    finally:
        sys.settrace(tracer)
        sys.breakpointhook = hook


def _emit(
    frame: types.FrameType, filename: str, outside: types.FrameType | None, stops: bool
) -> None:
    """Emit a debug point for the line that a frame is at, with the functions of the kernel that
    are called there, innermost first, up to the frame `outside`.
    """
    trace = current_trace("breakpoint()")
    if trace.function_kind != "kernel":
        return
    operands: list[Any] = []
    functions: list[dict[str, Any]] = []
    line, variables = 0, dict[str, Any]()
    inner: types.FrameType | None = frame
    while inner is not None and inner is not outside:
        if inner.f_code.co_filename == filename:
            line = line or inner.f_lineno
            for name, value in inner.f_locals.items():
                if not name.startswith("__") and name not in variables:
                    record = _record(value, operands)
                    if record is not None:
                        variables[name] = record
            if not inner.f_code.co_name.startswith("__dsl"):  # else a body that rewriting made
                functions.append(
                    {"name": inner.f_code.co_name, "line": line, "variables": variables}
                )
                line, variables = 0, {}
        inner = inner.f_back
    point = {"stops": stops, "file": filename, "functions": functions}
    ir = trace.ir
    attributes = {
        "format": ir.StringAttr.get(""),
        DEBUG_ATTRIBUTE: ir.StringAttr.get(json.dumps(point)),
    }
    ir.Operation.create("gpu.printf", operands=operands, attributes=attributes, loc=trace.loc())


def _record(value: Any, operands: list[Any]) -> Any:
    """The record of a variable: how to show it, with its values of run time put into `operands`.
    None for what is not shown.
    """
    if isinstance(value, _SKIPPED) or callable(value):
        return None
    if isinstance(value, Numeric):
        return _number(value, operands)
    if isinstance(value, Tensor):
        return _tensor(value, operands)
    if isinstance(value, TensorSSA):
        parts = [_number(x, operands) for x in to_elements(value)[:_MOST_ELEMENTS]]
        return {"kind": "list", "parts": parts}
    if isinstance(value, tuple | list):
        return {"kind": "list", "parts": [_record(x, operands) for x in value]}
    return {"kind": "text", "text": repr(value)[:200]}


def _number(value: Any, operands: list[Any]) -> Any:
    if not is_dynamic(value):
        return {"kind": "text", "text": str(value)}
    operands.append(value.ir_value())
    return {"kind": "number", "operand": len(operands) - 1, "type": type(value).__name__}


def _tensor(value: Tensor, operands: list[Any]) -> Any:
    """A tensor: its address, and where its elements are."""
    composed = isinstance(value.layout, algebra.ComposedLayout)
    if not value.has_memory or value.element_type.width < 8 or composed:
        return {"kind": "text", "text": str(value)}
    shape, stride = _extents(value.shape, operands), _extents(value.stride, operands)
    operands.append(value.iterator.toint().ir_value())
    return {"kind": "tensor", "operand": len(operands) - 1, "dtype": value.element_type.__name__,
            "shape": shape, "stride": stride, "space": str(value.memspace)}  # fmt: skip


def _extents(value: Any, operands: list[Any]) -> Any:
    if isinstance(value, tuple):
        return [_extents(x, operands) for x in value]
    return _number(value, operands) if is_dynamic(value) else int(value)
