"""The emitter protocol: a DSL implements it so that control flow becomes its IR.

An emitter sees flat lists of SSA values (`ir.Value`), never Python variables: which variables a
construct carries, their types, and the join of types across paths are decided before it is called
(`metastage.control_flow`). `basedsl` ships `metastage.scf_emitter`; `toy` ships one over `cf`.

Rules every emitter keeps: callbacks are called with the insertion point where their ops belong; on
return of a method the insertion point is behind what was emitted; if a callback raises, whatever
was built so far is removed, the insertion point restored, and the exception goes on (the caller may
then call the method again, with other types).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Value = Any  # an ir.Value of the DSL's bindings
Values = Sequence[Value]


@dataclass(frozen=True)
class LoopHints:
    """Hints of the user for a loop; an emitter passes on those that its IR can express.

    `unroll` is the number of iterations to put into one, `unroll_full` asks for all of them,
    `prefetch_stages` is the number of iterations by which loads run ahead, and `vectorize` asks for
    vector instructions.
    """

    unroll: int | None = None
    unroll_full: bool = False
    prefetch_stages: int | None = None
    vectorize: bool = False


class Emitter(Protocol):
    """Builds control flow. All values passed in and out of one construct keep their order."""

    def for_(
        self,
        start: Value,
        stop: Value,
        step: Value,
        init: Values,
        body: Callable[[Value, Values], Values],
        hints: LoopHints,
        loc: Any,
        *,
        unsigned: bool,
    ) -> Values:
        """Emit a counted loop from `start` up to `stop`, which is left out, by the positive `step`:
        three values of one integer type, compared as `unsigned` or signed.

        `init` are the first carried values. `body(induction, carried)` returns the next carried
        values, of the same types; the results are the last carried values. `hints` are the user's,
        `loc` is the loop's `ir.Location`.
        """

    def while_(
        self,
        init: Values,
        test: Callable[[Values], tuple[Value, Values]],
        body: Callable[[Values], Values],
        loc: Any,
    ) -> Values:
        """Emit a loop. `test(carried)` returns an i1 and the values handed to the body, or to the
        outside when the i1 is false; all of them have the types of `init`.
        """

    def if_(
        self,
        condition: Value,
        then: Callable[[], Any],
        orelse: Callable[[], Any],
        merge: Callable[[Any, Any], Sequence[Callable[[], Values]]],
        loc: Any,
    ) -> Values:
        """Emit a branch on the i1 `condition`. Both sides, `then` and `orelse`, are traced, each
        returning an outcome opaque to the emitter; then `merge(then_outcome, else_outcome)` gives,
        per branch, a function called with the insertion point at that branch's end, which returns
        the values the branch yields (equal types).
        """

    def assert_(self, condition: Value, message: str, loc: Any) -> None:
        """Emit an assertion: stop the program with `message` unless the i1 `condition` holds."""
