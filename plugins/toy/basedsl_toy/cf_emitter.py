"""Control flow as `cf` blocks: the emitter protocol without structured ops.

The core decides which values a loop or branch carries, and traces its bodies through callbacks; the
emitter only makes blocks and jumps:

for:    ^head(i, carried): cond_br i < stop, ^body, ^exit      ^body: ...; br ^head(i + step, ...)
while:  ^head(carried): ...test...; cond_br go, ^body(values), ^exit(values)
if:     cond_br c, ^then, ^else      ^then: ...; br ^join(values)      ^join(results)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from basedsl import LoopHints, Trace, Value, Values


class CfEmitter:
    """Emits loops, branches and assertions as blocks of the `cf` dialect.

    `basedsl.Emitter` is the protocol: it says what each method promises. An exception in a
    callback takes back every block that was made, since the core may then try again.
    """

    #: Floats raise where Python's do: division by zero, math domain errors.
    float_checks = True

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.ir = trace.ir
        self.cf = trace.bindings.cf
        self.arith = trace.bindings.arith

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
        """Emit a counted loop. `cf` has no place for the hints: they change speed only."""
        predicate = self.arith.CmpIPredicate.ult if unsigned else self.arith.CmpIPredicate.slt
        with self._undone_on_error():
            types = [start.type, *(v.type for v in init)]
            head, inside, exit_ = self._block(types), self._block([]), self._block([])
            self.cf.BranchOp([start, *init], head, loc=loc)
            self.trace.move_to(head)
            index, *carried = list(head.arguments)
            go = self.arith.CmpIOp(predicate, index, stop, loc=loc).result
            self.cf.CondBranchOp(go, [], [], inside, exit_, loc=loc)
            self.trace.move_to(inside)
            following = body(index, carried)
            after = self.arith.AddIOp(index, step, loc=loc).result
            self.cf.BranchOp([after, *following], head, loc=loc)
            self.trace.move_to(exit_)
            return carried

    def while_(
        self,
        init: Values,
        test: Callable[[Values], tuple[Value, Values]],
        body: Callable[[Values], Values],
        loc: Any,
    ) -> Values:
        """Emit a loop whose test is the head block: its values go to the body and to the exit."""
        with self._undone_on_error():
            types = [v.type for v in init]
            head, inside, exit_ = self._block(types), self._block(types), self._block(types)
            self.cf.BranchOp(list(init), head, loc=loc)
            self.trace.move_to(head)
            go, values = test(list(head.arguments))
            self.cf.CondBranchOp(go, list(values), list(values), inside, exit_, loc=loc)
            self.trace.move_to(inside)
            following = body(list(inside.arguments))
            self.cf.BranchOp(list(following), head, loc=loc)
            self.trace.move_to(exit_)
            return list(exit_.arguments)

    def if_(
        self,
        condition: Value,
        then: Callable[[], Any],
        orelse: Callable[[], Any],
        merge: Callable[[Any, Any], Sequence[Callable[[], Values]]],
        loc: Any,
    ) -> Values:
        """Emit a branch. The join block has an argument for each value that both sides yield."""
        with self._undone_on_error():
            blocks = self._block([]), self._block([])
            self.cf.CondBranchOp(condition, [], [], *blocks, loc=loc)
            outcomes, ends = [], []
            for block, run in zip(blocks, (then, orelse), strict=True):
                self.trace.move_to(block)
                outcomes.append(run())
                ends.append(self.ir.InsertionPoint.current.block)
            join: Any = None
            for end, values_of in zip(ends, merge(*outcomes), strict=True):
                self.trace.move_to(end)
                values = list(values_of())
                join = join or self._block([v.type for v in values])
                self.cf.BranchOp(values, join, loc=loc)
            self.trace.move_to(join)
            return list(join.arguments)

    def assert_(self, condition: Value, message: str, loc: Any) -> None:
        """Emit `cf.assert`; the core's pipeline makes a Python exception of a failure."""
        self.cf.AssertOp(condition, message, loc=loc)

    def _block(self, types: Sequence[Any]) -> Any:
        """A new block with arguments of these types at the end of the function."""
        region = self.ir.InsertionPoint.current.block.region
        return region.blocks.append(*types, arg_locs=[self.trace.loc()] * len(types))

    @contextlib.contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Remove the blocks and the jump made in the `with` if a callback raises."""
        origin = self.ir.InsertionPoint.current.block
        count = len(origin.region.blocks)
        try:
            yield
        except BaseException:
            *_, last = origin.operations
            if last.operation.name in ("cf.br", "cf.cond_br"):
                last.operation.erase()
            self.trace.move_to(origin)
            bin_ = self.trace.bindings.func.FuncOp("bin", ([], []), ip=False)
            for block in list(origin.region.blocks)[count:]:
                block.append_to(bin_.body)
            bin_.operation.erase()
            raise
