"""Loop ranges and the markers of static code: `range`, `range_constexpr`, `const_expr`.

A `range` in a `for` of a compiled function is a staged loop, also with Python bounds; a
`range_constexpr` is unrolled by the interpreter. Iterating a `range` in plain Python, or in a
comprehension, needs static bounds.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from basedsl.errors import DSLError, DSLTypeError
from basedsl.numeric import Numeric, is_dynamic
from basedsl.tracing import LoopHints


class Range:
    """The bounds and hints of a staged loop; `start`, `stop`, `step` are ints or integer values."""

    __slots__ = ("hints", "start", "step", "stop")

    def __init__(self, start: Any, stop: Any, step: Any, hints: LoopHints) -> None:
        self.start = start
        self.stop = stop
        self.step = step
        self.hints = hints

    #: What makes an item of the loop variable, and the functions whose variables it uses.
    item: Callable[[Any], Any] | None = None
    functions: tuple[Any, ...] = ()

    @property
    def is_static(self) -> bool:
        """True if every bound is known while compiling."""
        return not any(map(is_dynamic, (self.start, self.stop, self.step)))

    def as_builtin(self) -> builtins.range:
        """Return the same range in Python; a DSLError if a bound is dynamic."""
        if not self.is_static:
            raise DSLError(
                "a range with a dynamic bound cannot be iterated by Python",
                hint="use it in a `for` statement of a decorated function, or make the bound "
                "static (a Constexpr argument)",
            )
        return builtins.range(*(_static_int(x) for x in (self.start, self.stop, self.step)))

    def __iter__(self) -> Iterator[int]:
        return iter(self.as_builtin())

    def __bool__(self) -> bool:
        start, stop, step = self.start, self.stop, self.step
        if not is_dynamic(step):
            found = start < stop if _static_int(step) > 0 else start > stop
        else:
            found = ((step > 0) & (start < stop)) | ((step < 0) & (start > stop))
        return found if is_dynamic(found) else bool(found)

    def __len__(self) -> int:
        return len(self.as_builtin())

    def __getitem__(self, index: Any) -> Any:
        return self.as_builtin()[index]

    def __contains__(self, item: Any) -> bool:
        return item in self.as_builtin()

    def __reversed__(self) -> Range:
        plain = self.as_builtin()[::-1]
        return Range(plain.start, plain.stop, plain.step, self.hints)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Range):
            return self.as_builtin() == other.as_builtin()
        return self.as_builtin() == other

    def __hash__(self) -> int:
        return hash(self.as_builtin())

    def __repr__(self) -> str:
        return f"range({self.start}, {self.stop}, {self.step})"


def range(
    *bounds: Any,
    unroll: int | None = None,
    unroll_full: bool = False,
    prefetch_stages: int | None = None,
    vectorize: bool = False,
    **unknown: Any,
) -> Range:
    """Return the range of a staged loop: `range(stop)` or `range(start, stop[, step])`, with hints.

    The bounds are ints or integer values of any width; the loop variable has their common type.
    `unroll=N` asks for N copies of the body (1 forbids unrolling), `unroll_full=True` for all;
    `prefetch_stages=N` asks for a software pipeline of N stages; `vectorize=True` for pairing
    lanes. The DSL's emitter gets the hints; they change speed only. In plain Python the range
    iterates like the builtin.

        for i in basedsl.range(n, unroll=4):
            total += x[i]

    Raises DSLTypeError for bounds that are no integers and for other keywords, and ValueError for a
    step known to be 0.
    """
    for name in unknown:
        raise DSLTypeError(
            f"range() has no argument '{name}'",
            hint="write range(start, stop, step), and of hints their names: unroll=4",
        )
    if not 1 <= len(bounds) <= 3:
        raise DSLTypeError(f"range expected 1 to 3 bounds, got {len(bounds)}")
    bounds = tuple(map(integer_of, bounds))
    for bound in bounds:
        if not _is_integer(bound):
            raise DSLTypeError(
                f"a range bound must be an integer, got {_describe(bound)}",
                hint="convert it, for example with Int32(...)",
            )
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if not is_dynamic(step) and _static_int(step) == 0:
        error = ValueError("range() arg 3 must not be zero")
        error.add_note("hint: it is the step: 1 counts up, -1 down")
        raise error
    if unroll is not None and (not isinstance(unroll, int) or unroll < 1):
        raise DSLTypeError(f"unroll must be a positive int, got {unroll!r}")
    return Range(start, stop, step, LoopHints(unroll, unroll_full, prefetch_stages, vectorize))


def range_constexpr(*bounds: Any, unroll_full: bool = True) -> builtins.range:
    """Return a range unrolled while compiling: every index is a Python int.

    Takes the same bounds as `range`; all must be static, else a DSLError. `unroll_full` says what
    is so in any case; False is a DSLError.

        for k in basedsl.range_constexpr(4):      # four copies of the body, k = 0, 1, 2, 3
            total += x[i + k]
    """
    if not unroll_full:
        raise DSLError(
            "range_constexpr is always unrolled in full", hint="range(..., unroll_full=False)"
        )
    for bound in bounds:
        if is_dynamic(bound):
            raise DSLError(
                f"range_constexpr needs static bounds, got a dynamic {_describe(bound)}",
                hint="use range(...) for a loop at run time, or pass the bound as Constexpr",
            )
    return builtins.range(*(_static_int(bound) for bound in bounds))


def const_expr(value: Any) -> Any:
    """Return `value`, which must be static: the `if` or `while` around it is decided while
    compiling.

        if basedsl.const_expr(width == 4): ...    # only the branch that is taken is compiled

    Raises DSLError for a dynamic value.
    """
    if is_dynamic(value):
        raise DSLError(
            f"const_expr needs a static value, got a dynamic {_describe(value)}",
            hint="drop const_expr to branch at run time, or make the operands Constexpr",
        )
    return value


def _is_integer(x: Any) -> bool:
    if isinstance(x, Numeric):
        return bool(type(x).is_integer)
    return hasattr(x, "__index__")


def integer_of(x: Any) -> Any:
    """Return an integer; in place of an object, the dynamic integer that its `__index__` gives."""
    method = getattr(type(x), "__index__", None)
    if isinstance(method, FunctionType) and not isinstance(x, Numeric):
        return method(x)
    return x


def _static_int(x: Any) -> int:
    return int(x) if isinstance(x, Numeric) else x.__index__()


def _describe(x: Any) -> str:
    return type(x).__name__
