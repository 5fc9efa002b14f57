"""Control flow made by hand: `if_generate`, `while_generate`, `for_generate`, `yield_out`.

Python's own `if`, `while` and `for` are rewritten where a decorated function has them; in helpers
that only run, these functions emit the same operations of `scf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from basedsl import (
    TYPES,
    Boolean,
    DSLTypeError,
    Int32,
    Numeric,
    Trace,
    as_numeric,
    current_trace,
    is_dynamic,
    logical_not,
    select,
    user_span,
)
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.compat.mlir_dialects import as_ir_value
from basedsl_cute.compat.mlir_values import extract_mlir_values, new_from_mlir_values


@takes_location
def not_(value: Any) -> Any:
    """Return `not value`, of a run-time value too."""
    return logical_not(_truth(value)) if is_dynamic(value) else not value


@takes_location
def and_(*values: Any) -> Any:
    """Return whether all values are true; all of them are evaluated."""
    result: Any = True
    for value in values:
        if not is_dynamic(value):
            if not value:
                return False
            continue
        result = _truth(value) if result is True else result & _truth(value)
    return result


@takes_location
def or_(*values: Any) -> Any:
    """Return whether one of `values` is true; all of them are evaluated."""
    result: Any = False
    for value in values:
        if not is_dynamic(value):
            if value:
                return True
            continue
        result = _truth(value) if result is False else result | _truth(value)
    return result


@takes_location
def select_(cond: Any, if_value: Any, else_value: Any) -> Any:
    """Return `if_value` if `cond`, a number, is true, else `else_value`, in their common type.

    Both are evaluated; of a condition that is known while compiling the value is returned as it is.
    """
    if not is_dynamic(cond):
        return if_value if cond else else_value
    return select(_truth(cond), if_value, else_value)


def _truth(value: Any) -> Any:
    return value if isinstance(value, Boolean) else value != 0


def yield_out(args: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """End the body of a construct made by hand with the values that it passes on: `args` is one or
    a list of them, numbers, SSA values or trees of these; None passes on nothing. Raises DSLError
    outside of a function that is being compiled.
    """
    trace = current_trace("yield_out()")
    values = _values(() if args is None else args)
    trace.emit(trace.ir.Operation.create, "scf.yield", operands=values)


def if_generate(
    cond: Any,
    then_body: Callable[..., Any],
    else_body: Callable[..., Any] | None = None,
    input_args: Sequence[Any] | None = None,
    return_types: Sequence[Any] | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Run `then_body` if `cond` holds, else `else_body`: at run time for a dynamic `cond`.

    Both get `input_args`. What they return (or end with by `yield_out`) is returned: one number, or
    a list of several, of the types `return_types` where those are given. Raises DSLTypeError where
    the two do not agree.
    """
    given = tuple(input_args or ())
    if not _is_value(cond):
        if cond:
            return then_body(*given)
        return None if else_body is None else else_body(*given)
    trace = current_trace("if_generate()")
    condition = _truth(as_numeric(_number(trace, cond))).ir_value()
    create = trace.ir.Operation.create
    draft = trace.emit(create, "scf.if", operands=[condition], regions=2)
    ends = []
    for region, body in zip(draft.regions, (then_body, else_body), strict=True):
        block = region.blocks.append()
        with trace.insertion(block), trace.inside("if_generate() branch", user_span()):
            ends.append(_finish(trace, block, None if body is None else body(*given)))
    types = [value.type for value in ends[0]]
    if types and else_body is None:
        raise DSLTypeError("if_generate() with results takes an else_body")
    if else_body is not None and types != [value.type for value in ends[1]]:
        raise DSLTypeError("the bodies of if_generate() return different types")
    final = trace.emit(create, "scf.if", results=types, operands=[condition], regions=2)
    for region, old in zip(final.regions, draft.regions, strict=True):
        old.blocks[0].append_to(region)
    draft.erase()
    return _results(list(final.results), return_types)


def while_generate(
    inputs: Sequence[Any],
    conditional: Callable[..., Any],
    loop_body: Callable[..., Any] | None = None,
    *,
    input_arg_count: int | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Run `loop_body` while `conditional` holds; both get the values that the loop carries.

    The loop starts with `inputs`; the body returns the next values (or ends with them by
    `yield_out`). Returns the last values: one, or a list. Without `loop_body` it decorates it.
    `input_arg_count` has no effect: the values of `inputs` are counted.
    """
    if loop_body is None:
        return lambda body: while_generate(inputs, conditional, body)
    trace = current_trace("while_generate()")
    kinds = list(inputs)
    start = _values(kinds)

    def bind(values: Sequence[Any]) -> list[Any]:
        return _like(kinds, values)

    def test(values: Sequence[Any]) -> tuple[Any, list[Any]]:
        condition = conditional(*bind(values))
        return _truth(as_numeric(_number(trace, condition))).ir_value(), list(values)

    def step(values: Sequence[Any]) -> list[Any]:
        block = trace.ir.InsertionPoint.current.block
        returned = loop_body(*bind(values))
        ended = _terminator(block)
        if ended is None:
            return _values(() if returned is None else returned)
        operands = list(ended.operands)
        ended.erase()
        return operands

    with trace.inside("while_generate() loop", user_span()):
        results = trace.emitter.while_(start, test, step, trace.loc())
    final = _like(kinds, results)
    return final[0] if len(final) == 1 else final


def for_generate(
    start: Any,
    stop: Any = None,
    step: Any = None,
    iter_args: Sequence[Any] | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Iterator[Any]:
    """Make a loop from `start` to `stop` by `step`, as `range`, whose body is what the caller does
    with the one item of this iterator.

        for i in for_generate(0, n):
            ...
            yield_out()

    With `iter_args` the item is (index, carried values, results): the body ends with `yield_out(new
    values)`, and when the loop is over the list `results` has the last ones.
    """
    trace = current_trace("for_generate()")
    first, last = (Int32(0), start) if stop is None else (start, stop)
    bounds = [_number(trace, x) for x in (first, last, 1 if step is None else step)]
    kinds = list(iter_args or ())
    init = _values(kinds)
    low, high, by = (as_numeric(x).to(Int32).ir_value() for x in bounds)
    types = [value.type for value in init]
    create = trace.ir.Operation.create
    op = trace.emit(create, "scf.for", results=types, operands=[low, high, by, *init], regions=1)
    where = [trace.loc()] * (1 + len(types))
    block = op.regions[0].blocks.append(low.type, *types, arg_locs=where)
    index, *carried = block.arguments
    outcome: list[Any] = []
    with trace.insertion(block), trace.inside("for_generate() loop", user_span()):
        item = Int32.from_value(index)
        yield (item, _like(kinds, carried), outcome) if kinds else item
        if _terminator(block) is None:
            create("scf.yield", loc=trace.loc())
    outcome += _like(kinds, list(op.results))


# Values ------------------------------------------------------------------------------------------


def _is_value(x: Any) -> bool:
    return is_dynamic(x) or isinstance(x, current_trace("if_generate()").ir.Value)


def _number(trace: Trace, x: Any) -> Any:
    """A number for an SSA value, Int32 for i32 and so on; anything else as it is."""
    if not isinstance(x, trace.ir.Value):
        return x
    return number_of(x)


def number_of(value: Any) -> Any:
    """The number that an SSA value of a numeric MLIR type is; integers become signed."""
    name = _NUMBERS.get(str(value.type))
    if name is None:
        raise DSLTypeError(f"a value of MLIR type {value.type} is no number")
    kind: Any = TYPES[name]
    return kind.from_value(value)


_NUMBERS = {
    "i1": "Boolean", "f16": "Float16", "bf16": "BFloat16", "f32": "Float32", "f64": "Float64",
    **{f"i{width}": f"Int{width}" for width in (8, 16, 32, 64, 128)},
}  # fmt: skip


def _values(given: Any) -> list[Any]:
    """The SSA values of numbers, trees and SSA values."""
    several = given if isinstance(given, list | tuple) else [given]
    found: list[Any] = []
    for one in several:
        if isinstance(one, Numeric | bool | int | float):
            found.append(as_numeric(one).ir_value())
        else:
            inner = extract_mlir_values(one)
            found += inner or [as_ir_value(one)]
    return found


def _like(kinds: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Things like `kinds` of other SSA values."""
    ir = current_trace("a loop").ir
    left = list(values)
    made: list[Any] = []
    for kind in kinds:
        if isinstance(kind, ir.Value):
            made.append(left.pop(0))
        elif isinstance(kind, Numeric | bool | int | float):
            made.append(type(as_numeric(kind)).from_value(left.pop(0)))
        else:
            count = len(extract_mlir_values(kind))
            made.append(new_from_mlir_values(kind, left[:count]))
            del left[:count]
    return made


def _terminator(block: Any) -> Any:
    operations = list(block.operations)
    last = operations[-1].operation if operations else None
    return last if last is not None and last.name == "scf.yield" else None


def _finish(trace: Trace, block: Any, returned: Any) -> list[Any]:
    """End a block with what its body returned, unless the body has ended it; its values."""
    ended = _terminator(block)
    if ended is not None:
        return list(ended.operands)
    values = _values(() if returned is None else returned)
    trace.ir.Operation.create("scf.yield", operands=values, loc=trace.loc())
    return values


def _results(values: list[Any], kinds: Sequence[Any] | None) -> Any:
    made: list[Any]
    if not values:
        return None
    if kinds is not None:
        made = [
            kind.from_value(value) if hasattr(kind, "from_value") else value
            for kind, value in zip(kinds, values, strict=True)
        ]
    else:
        made = [number_of(value) for value in values]
    return made[0] if len(made) == 1 else made
