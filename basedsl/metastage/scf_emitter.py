"""Control flow as `scf` operations: the emitter of DSLs that do not bring their own.

Regions are filled in place. `if_` learns its result types only after both branches are traced, so
it traces into a draft and then moves the two blocks into the final operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from basedsl.tracing import LoopHints, Trace, Value, Values

PREFETCH_STAGES = "basedsl.prefetch_stages"


class ScfEmitter:
    """Emits `scf.for`, `scf.while`, `scf.if` and `cf.assert` at the insertion point of `trace`."""

    def __init__(self, trace: Trace) -> None:
        self._ir = trace.ir
        self._at_end_of = trace.insertion

    @property
    def float_checks(self) -> bool:
        """True: errors of floats are Python's, such as those of a division by zero."""
        return True

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
        """Emit `scf.for` from `start` up to `stop`, which is left out, by the positive `step`:
        three values of one integer type, compared as `unsigned` or signed. The induction variable
        has that type.

        `init` are the first carried values; `body(induction, carried)` emits the body and returns
        the next ones, of the same types. `hints` become attributes of the loop; `loc` is its
        `ir.Location`. Returns the last carried values.
        """
        ir = self._ir
        attributes = loop_attributes(ir, hints)
        if unsigned:
            attributes["unsignedCmp"] = ir.UnitAttr.get()
        types = [value.type for value in init]
        op = ir.Operation.create(
            "scf.for",
            results=types,
            operands=[start, stop, step, *init],
            attributes=attributes,
            regions=1,
            loc=loc,
        )
        try:
            block = op.regions[0].blocks.append(
                start.type, *types, arg_locs=[loc] * (1 + len(types))
            )
            induction, *carried = block.arguments
            with self._at_end_of(block):
                _yield(ir, body(induction, carried), loc)
        except BaseException:
            op.erase()
            raise
        self.loop_traced(op, hints)
        return list(op.results)

    def loop_traced(self, op: Any, hints: LoopHints) -> None:
        """Override to give each complete `scf.for` attributes; called with the operation `op` and
        its `hints`.
        """

    def while_(
        self,
        init: Values,
        test: Callable[[Values], tuple[Value, Values]],
        body: Callable[[Values], Values],
        loc: Any,
    ) -> Values:
        """Emit `scf.while`: the test is its first region, the body its second.

        `init` are the first carried values. `test(carried)` returns an i1 and the values handed to
        `body`, which returns the next carried ones; all have the types of `init`. `loc` is the
        loop's `ir.Location`. Returns the values with which the test was false.
        """
        ir = self._ir
        types = [value.type for value in init]
        op = ir.Operation.create(
            "scf.while", results=types, operands=list(init), regions=2, loc=loc
        )
        try:
            locs = [loc] * len(types)
            before = op.regions[0].blocks.append(*types, arg_locs=locs)
            after = op.regions[1].blocks.append(*types, arg_locs=locs)
            with self._at_end_of(before):
                condition, values = test(list(before.arguments))
                ir.Operation.create("scf.condition", operands=[condition, *values], loc=loc)
            with self._at_end_of(after):
                _yield(ir, body(list(after.arguments)), loc)
        except BaseException:
            op.erase()
            raise
        return list(op.results)

    def if_(
        self,
        condition: Value,
        then: Callable[[], Any],
        orelse: Callable[[], Any],
        merge: Callable[[Any, Any], Sequence[Callable[[], Values]]],
        loc: Any,
    ) -> Values:
        """Emit `scf.if` on the i1 `condition`; its else region is left out when it would be empty.

        `then()` and `orelse()` emit the branches and return an outcome each; `merge` gets the two
        outcomes and returns, per branch, the function that emits the end of that branch and returns
        the values that it yields. `loc` is the operation's `ir.Location`. Returns the results.
        Raises TypeError for branches that yield values of different types.
        """
        ir = self._ir
        draft = ir.Operation.create("scf.if", operands=[condition], regions=2, loc=loc)
        try:
            blocks = [region.blocks.append() for region in draft.regions]
            outcomes = []
            for block, trace in zip(blocks, (then, orelse), strict=True):
                with self._at_end_of(block):
                    outcomes.append(trace())
            yielded = []
            for block, finish in zip(blocks, merge(*outcomes), strict=True):
                with self._at_end_of(block):
                    yielded.append(list(finish()))
                    _yield(ir, yielded[-1], loc)
            types = [value.type for value in yielded[0]]
            others = [value.type for value in yielded[1]]
            if types != others:
                raise TypeError(f"the branches yield different types: {types} and {others}")
            final = ir.Operation.create(
                "scf.if", results=types, operands=[condition], regions=2, loc=loc
            )
        except BaseException:
            draft.erase()
            raise
        blocks[0].append_to(final.regions[0])
        if types or _has_work(blocks[1]):
            blocks[1].append_to(final.regions[1])
        draft.erase()
        return list(final.results)

    def assert_(self, condition: Value, message: str, loc: Any) -> None:
        """Emit `cf.assert` of the i1 `condition`, which stops the program with `message`. It stays
        where it is while `scf` is around it. `loc` is its `ir.Location`.
        """
        ir = self._ir
        ir.Operation.create(
            "cf.assert",
            operands=[condition],
            attributes={"msg": ir.StringAttr.get(message)},
            loc=loc,
        )


def loop_attributes(ir: Any, hints: LoopHints) -> dict[str, Any]:
    """Return the attributes of an `scf.for` with these hints.

    `loop_annotation` is LLVM's: `convert-scf-to-cf` passes it on to the loop's back edge, and LLVM
    obeys it, on the CPU and in NVPTX. `basedsl.prefetch_stages` is for a DSL's own passes, which
    run while there still is an `scf.for`.
    """
    attributes: dict[str, Any] = {}
    annotation = []
    if hints.unroll_full:
        annotation.append("unroll = <full = true>")
    elif hints.unroll is not None and hints.unroll <= 1:
        annotation.append("unroll = <disable = true>")
    elif hints.unroll is not None:
        annotation.append(f"unroll = <count = {hints.unroll} : i32>")
    if hints.vectorize:
        annotation.append("vectorize = <disable = false>")
    if annotation:
        attributes["loop_annotation"] = ir.Attribute.parse(
            f"#llvm.loop_annotation<{', '.join(annotation)}>"
        )
    if hints.prefetch_stages is not None:
        attributes[PREFETCH_STAGES] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), hints.prefetch_stages
        )
    return attributes


def _yield(ir: Any, values: Values, loc: Any) -> None:
    ir.Operation.create("scf.yield", operands=list(values), loc=loc)


def _has_work(block: Any) -> bool:
    first, *_ = block.operations
    name: str = first.operation.name
    return name != "scf.yield"
