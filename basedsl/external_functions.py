"""Functions that others have compiled, called from a DSL by their names and types.

hypot = external("hypot", (Float64, Float64), Float64)

@toy.jit
def length(x, y):
    return hypot(x, y)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from basedsl.errors import DSLCallError, DSLError, DSLTypeError, with_article
from basedsl.location import user_span
from basedsl.numeric import Numeric, as_numeric, mlir_type
from basedsl.tracing import Trace, current_trace

_NAME = re.compile(r"[A-Za-z_$][\w$.]*")
_SCOPES = ("builtin.module", "gpu.module")


class ExternalFunction:
    """A function by the `name` that the linker knows, with the types of its `arguments` and of its
    `result`, None for a function without one. Raises DSLTypeError for a name that is no symbol and
    for types that are not numeric.
    """

    __dsl_staged__ = True

    def __init__(self, name: str, arguments: Sequence[Any], result: Any) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise DSLTypeError(f"the name of an external function is a symbol, not {name!r}")
        for kind in (*arguments, *(() if result is None else (result,))):
            if not (_is_number(kind) or hasattr(kind, "external_type")):
                raise DSLTypeError(
                    f"an external function takes and returns numeric types, not {kind!r}",
                    hint="declare it as its C declaration is: (Float32, Int32), Float32",
                )
        self.name = name
        self.arguments = tuple(arguments)
        self.result = result

    def __repr__(self) -> str:
        shown = ", ".join(kind.__name__ for kind in self.arguments)
        result = "None" if self.result is None else self.result.__name__
        return f"<external {self.name}({shown}) -> {result}>"

    def __dsl_digest__(self) -> str:
        return repr(self)

    def __call__(self, *args: Any) -> Any:
        """Call it where the program runs. Raises DSLCallError for another number of arguments, and
        DSLError outside of a function that is being compiled.
        """
        trace = current_trace(f"a call of the external function '{self.name}'")
        if len(args) != len(self.arguments):
            raise DSLCallError(
                f"'{self.name}' is declared with {len(self.arguments)} arguments, got {len(args)}"
            )
        ir = trace.ir
        values = [_value(kind, arg) for kind, arg in zip(self.arguments, args, strict=True)]
        self._declare(trace)
        types = [] if self.result is None else [_type(trace, self.result)]
        made = trace.emit(
            ir.Operation.create,
            "llvm.call",
            results=types,
            operands=values,
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(self.name),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(values), 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )
        if self.result is None:
            return None
        return self.result.from_value(made.result)

    def _declare(self, trace: Trace) -> None:
        """Declare the function in the module that the call is in, once."""
        ir = trace.ir
        scope = ir.InsertionPoint.current.block.owner.operation
        while scope.name not in _SCOPES:
            scope = scope.parent.operation
        body = scope.regions[0].blocks[0]
        arguments = ", ".join(str(_type(trace, kind)) for kind in self.arguments)
        result = "void" if self.result is None else str(_type(trace, self.result))
        wanted = ir.Type.parse(f"!llvm.func<{result} ({arguments})>")
        for op in body.operations:
            attributes = op.operation.attributes
            if "sym_name" in attributes and str(attributes["sym_name"].value) == self.name:
                known = attributes["function_type"].value if "function_type" in attributes else None
                if op.operation.name == "llvm.func" and str(known) == str(wanted):
                    return
                raise DSLError(
                    f"'{self.name}' is declared twice, with other types: {known} and {wanted}",
                    user_span(),
                    hint="declare an external function once, as its C declaration is",
                )
        with ir.InsertionPoint.at_block_begin(body):
            ir.Operation.create(
                "llvm.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get(self.name),
                    "function_type": ir.TypeAttr.get(wanted),
                    "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                },
                loc=trace.loc(),
            )


def external(name: str, arguments: Sequence[Any], result: Any = None) -> ExternalFunction:
    """Declare a function that is compiled elsewhere, to be called from @jit functions and kernels.

    `name` is its symbol, `arguments` are its types, and `result` is that of its result, None for a
    function without one: numeric types as in its C declaration. Which code defines it is a matter
    of options: for host code the process and the shared libraries of `libs`, for kernels what the
    DSL links them with. Types that are not those of the definition are not noticed.
    Raises DSLTypeError for a name that is no symbol and for other types.
    """
    return ExternalFunction(name, arguments, result)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Numeric)


def _type(trace: Trace, kind: Any) -> Any:
    return mlir_type(kind, trace.ir) if _is_number(kind) else kind.external_type(trace.ir)


def _value(kind: Any, value: Any) -> Any:
    if not _is_number(kind):
        return kind.external_value(value)
    number = as_numeric(value)
    if number.is_float and kind.is_integer:
        raise DSLCallError(
            f"an external function's {kind.__name__} got {with_article(type(number))}",
            hint=f"convert it with .to({kind.__name__})",
        )
    return (number if type(number) is kind else number.to(kind)).ir_value()
