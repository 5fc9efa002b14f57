"""Rule tables: what a step does with operations of each name, and what a rule may answer.

    RULES: RuleTable[Callable[[Builder, Any], RuleResult], Rule[...]] = RuleTable("lower", Rule)

    @RULES.register("math.floor", "math.ceil")
    def rounding(b: Builder, op: Any) -> RuleResult:
        return Replace(b.call(op.name, op.operands[0]))

A table refuses a second rule for an operation. A rule that rewrites says what becomes of its
operation by `Replace`, `Erase` or `Keep`, and `apply_result` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from basedsl.errors import CompilerBug
from basedsl.objectstage.failure import span_of_location
from basedsl.objectstage.pipeline import PipelineContext

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Rule(Generic[F]):
    """One row of a table: the function for operations called `op`, which is `apply`. A table that
    knows more about its rules has a subclass with further fields.
    """

    op: str
    apply: F

    @property
    def doc(self) -> str:
        """The function's docstring, or ""."""
        return (self.apply.__doc__ or "").strip()


R = TypeVar("R", bound=Rule[Any])


def missing_rule(op: Any, target: str) -> Exception:
    """The error for an MLIR operation without a rule, at its Python line."""
    return CompilerBug(
        f"the target {target!r} has no rule for {op.name}", span_of_location(op.location)
    )


class RuleTable(Mapping[str, R], Generic[F, R]):
    """Rules by operation name. `name` is for messages; `row` makes a rule from an operation's name,
    a function and the facts given to `register`; `missing` makes the error of `for_op`. Operations
    without a rule here have that of the table it `extends`, if it extends one.
    """

    def __init__(
        self,
        name: str,
        row: Callable[..., R],
        missing: Callable[[Any, str], Exception] = missing_rule,
        extends: RuleTable[F, R] | None = None,
    ) -> None:
        self.name = name
        self._row = row
        self._missing = missing
        self._extends = extends
        self._rules: dict[str, R] = {}
        self._found: dict[str, R] = {}  # what `for_op` has answered, of the other table too

    def register(self, *ops: str, **facts: Any) -> Callable[[F], F]:
        """Decorate the rule of each operation in `ops`; `facts` are further fields of its rows.

        Raises ValueError, naming both functions, if an operation has a rule in this table already.
        """

        def enter(function: F) -> F:
            for op in ops:
                if op in self._rules:
                    both = f"{_place(self._rules[op].apply)} and {_place(function)}"
                    raise ValueError(f"two rules for {op} in {self.name}: {both}")
                self._rules[op] = self._row(op, function, **facts)
            self._found.clear()
            return function

        return enter

    def for_op(self, op: Any, target: str) -> R:
        """The rule of `op`, an MLIR operation; an error that names it, the `target` and its line if
        none is.
        """
        found = self._found.get(op.name)
        if found is None:
            known: R | None = self.get(op.name)
            if known is None:
                raise self._missing(op, target)
            found = self._found[op.name] = known
        return found

    def get(self, op: str, default: Any = None) -> Any:
        """The rule of operations called `op`, or `default`."""
        found = self._rules.get(op)
        if found is None:
            return default if self._extends is None else self._extends.get(op, default)
        return found

    def __getitem__(self, op: str) -> R:
        found: R | None = self.get(op)
        if found is None:
            raise KeyError(op)
        return found

    def __contains__(self, op: object) -> bool:
        return isinstance(op, str) and self.get(op) is not None

    def __iter__(self) -> Iterator[str]:
        yield from self._rules
        for op in self._extends or ():
            if op not in self._rules:
                yield op

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"RuleTable({self.name!r}, {len(self)} rules)"


class Replace:
    """The answer of a rule whose `values` take the place of the results, one for each."""

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Replace({', '.join(map(str, self.values))})"


class Erase:
    """The answer of a rule whose operation is erased: nothing may use its results."""

    __slots__ = ()


class Keep:
    """The answer of a rule that leaves the operation as it is."""

    __slots__ = ()


RuleResult = Replace | Erase | Keep


@dataclass(frozen=True)
class Rewrite:
    """The pass that gives each operation which has a rule in `rules` to it: `rule(op, context)`
    returns a `RuleResult`. New operations are made before `op`, at its place in the source.
    """

    rules: RuleTable[Callable[[Any, PipelineContext], RuleResult], Rule[Any]]

    def __call__(self, op: Any, context: PipelineContext) -> Any:
        if not context.may_contain(*self.rules):
            return context.input
        ir, found = context.bindings.ir, []

        def visit(inner: Any) -> Any:
            if inner.name in self.rules:
                found.append(inner)
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for one in found:
            rule = self.rules[one.name]
            with ir.InsertionPoint(one), one.location:
                result = rule.apply(one, context)
            apply_result(rule, one, result)
        return None


def apply_result(rule: Rule[Any], op: Any, result: RuleResult) -> bool:
    """Do with `op` what its `rule` answered, which is `result`. Returns True if `op` is gone.

    Raises CompilerBug at the Python line of `op` where the answer does not fit it.
    """
    if isinstance(result, Keep):
        return False
    if isinstance(result, Replace):
        results = op.results
        if len(results) != len(result.values):
            answer = f"gives {len(result.values)} values for {len(results)} results"
            raise _bug(rule, op, answer)
        for old, new in zip(results, result.values, strict=True):
            old.replace_all_uses_with(new)
    elif not isinstance(result, Erase):
        raise _bug(rule, op, f"returns {result!r}, which is no Replace(...), Erase() or Keep()")
    elif any(next(iter(one.uses), None) is not None for one in op.results):
        raise _bug(rule, op, "erases it, but its result is used")
    op.erase()
    return True


def _bug(rule: Rule[Any], op: Any, answer: str) -> CompilerBug:
    where = _place(rule.apply)
    return CompilerBug(f"the rule {where} for {op.name} {answer}", span_of_location(op.location))


def _place(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"
