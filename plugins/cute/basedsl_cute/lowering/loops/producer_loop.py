"""Loops with `prefetch_stages=n` over the program's own pipeline: its producer runs n ahead.

A loop whose body begins with what a producer does, and goes on with the consumer,

    for i in range(lb, ub, step):          # prefetch_stages = n
        ACQUIRE a stage; LOAD(i) by TMA;  REST(i): wait for the stage, compute, release it

becomes

    for j in 0 .. n-1:                     # unrolled
        if lb + j step < ub: ACQUIRE; LOAD(lb + j step)
    for i in range(lb, ub, step):
        if i + n step < ub: ACQUIRE; LOAD(i + n step)
        REST(i)

The mbarriers of the pipeline order every load with the reads of its stage, whenever it is issued.
That is the same as long as what is loaded follows from the index and from the producer's own state,
and the loop writes no global memory. To load i + n before i is read takes more than n stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl_cute.dialect import CuteDialect
from basedsl_cute.dialect.attributes import ACQUIRES, UNBOUND_BYTES
from basedsl_cute.lowering.loops.loop_analysis import (
    ADDRESSES,
    TMA_LOAD,
    UnsupportedLoop,
    check_effect,
    defining,
    is_pure,
    is_strong,
    walk,
)
from basedsl_cute.lowering.loops.loop_builder import LoopBuilder

_WAITS = ("nvvm.mbarrier.try_wait.parity", "nvvm.mbarrier.try_wait")
# What a producer does, and around that, what says which thread does it.
_PRODUCES = frozenset((
    TMA_LOAD, *_WAITS, "nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.expect_tx",
    "nvvm.elect.sync", "nvvm.prefetch",
))  # fmt: skip
_FLOW = frozenset(("scf.if", "scf.for", "scf.yield"))
_CONSUMES = {
    *_WAITS, "nvvm.mbarrier.arrive", "nvvm.tcgen05.fence", "nvvm.tcgen05.mma", "nvvm.tcgen05.cp",
    "nvvm.tcgen05.mma.block_scale", "nvvm.tcgen05.mma.sp", "nvvm.tcgen05.mma.sp.block_scale",
    "nvvm.tcgen05.commit",
}  # fmt: skip


def has_producer(loop: Any) -> bool:
    """Return True if a loop has TMA loads that complete barriers of the program's own."""
    return any(op.name == TMA_LOAD and UNBOUND_BYTES not in op.attributes for op in walk(loop))


class ProducerLoop(LoopBuilder):
    """One such loop: finds its two parts (or raises UnsupportedLoop), and builds the new one."""

    def __init__(self, dialect: CuteDialect, loop: Any) -> None:
        super().__init__(dialect, loop)
        block = loop.regions[0].blocks[0]
        *self.ops, terminator = [op.operation for op in block.operations]
        self.yields = list(terminator.operands)
        self.index_argument, *self.carried = block.arguments
        self.place = {op: i for i, op in enumerate(self.ops)}
        self.produces = self._producer()
        self._check_rest()
        # The ops of each part, and which carried values it needs; of some both do, as two copies.
        self.ahead_ops, self.ahead = self._part(self.produces, [], self._check_ahead)
        others = [op for op in self.ops if self._acts(op) and op not in self.produces]
        results = [value for i, value in enumerate(self.yields) if i not in self.ahead]
        self.here_ops, self.here = self._part(others, results, self._check_here)

    # The parts -------------------------------------------------------------------------------

    def _producer(self) -> list[Any]:
        """Collect the ops with effects that are the producer's."""
        loads = [op for op in self.ops if any(inner.name == TMA_LOAD for inner in walk(op))]
        last = self.place[loads[-1]]
        produces = []
        for op in self.ops[: last + 1]:
            if any(inner.name in _PRODUCES for inner in walk(op)):
                self._check_producer(op)
                produces.append(op)
            else:
                self._check_before(op)
        self._check_barriers(produces)
        return produces

    def _check_before(self, op: Any) -> None:
        """Check the ops before a load that are not the producer's: they will run after it."""
        for inner in walk(op):
            moves = inner.name == "cute.load" and not is_strong(inner)
            moves |= inner.name == "cute.store" and self._space(inner.operands[1]) == "rmem"
            moves |= inner.name in ("cute.alloc_rmem", "scf.if", "scf.yield")
            if self._acts(inner) and not moves:
                raise UnsupportedLoop(
                    "it does something else before its TMA loads",
                    inner,
                    "begin the iteration with producer.acquire_and_advance() and the copies; "
                    "consumer.wait_and_advance() and all else come after them",
                )

    def _check_barriers(self, produces: list[Any]) -> None:
        """Check that each load completes a barrier of a pipeline from which a stage is acquired."""
        inside = [inner for op in produces for inner in walk(op)]
        rings = {_root(op.operands[0]) for op in inside if ACQUIRES in op.attributes}
        for op in inside:
            if op.name == TMA_LOAD and rings.isdisjoint(map(_root, op.operands)):
                raise UnsupportedLoop(
                    "its TMA copies complete a barrier of the program's own",
                    op,
                    "leave tma_bar_ptr= out, and have all threads of the block call the copy; or "
                    "acquire each stage from a pipeline.PipelineTmaAsync in the same iteration",
                )

    def _check_producer(self, op: Any) -> None:
        for inner in walk(op):
            if inner.name == TMA_LOAD and UNBOUND_BYTES in inner.attributes:
                raise UnsupportedLoop(
                    "some of its TMA copies complete a barrier of the program's own, and some none",
                    inner,
                    "give all of them tma_bar_ptr=, or none",
                )
            if inner.name in _WAITS and ACQUIRES not in inner.attributes:
                raise UnsupportedLoop(
                    "before its TMA loads it waits for something that is not known to be an empty "
                    "stage",
                    inner,
                    "acquire stages by pipeline.PipelineTmaAsync, and wait for full ones after "
                    "the copies",
                )
            reads = inner.name == "cute.load" and self._space(inner.operands[0]) == "gmem"
            if reads and not is_strong(inner):
                continue
            if self._acts(inner) and inner.name not in _PRODUCES | _FLOW:
                raise UnsupportedLoop("its TMA loads are mixed with other work", inner)

    def _check_rest(self) -> None:
        for op in self.ops:
            if op in self.produces:
                continue
            for inner in walk(op):
                if inner.name not in _CONSUMES:
                    check_effect(self.dialect, inner)

    def _space(self, value: Any) -> str:
        record = self.dialect.record(value.type)
        return "" if record is None else record.space

    def _acts(self, op: Any) -> bool:
        """Return True if an op does more than compute: it is in one part only, and not repeated."""
        if op.name.startswith("nvvm.read.ptx.sreg"):
            return False
        return not is_pure(op)

    def _part(
        self, roots: list[Any], values: list[Any], check: Callable[[Any], None]
    ) -> tuple[list[Any], list[int]]:
        """Collect the ops that compute `values` and what `roots` need, with them, and the numbers
        of the carried values among that. `check` is given each op with effects besides the roots.
        """
        arguments = {argument: i for i, argument in enumerate(self.carried)}
        found: set[int] = set()
        ops: set[Any] = set(roots)
        left = [v for op in roots for inner in walk(op) for v in inner.operands] + values
        done: set[Any] = set()
        while left:
            value = left.pop()
            if value in done:
                continue
            done.add(value)
            number = arguments.get(value)
            if number is not None:
                found.add(number)
                left.append(self.yields[number])
                continue
            made = defining(value)
            if made is None or made not in self.place or made in ops:
                continue
            if self._acts(made):
                check(made)
            ops.add(made)
            left += [v for inner in walk(made) for v in inner.operands]
        return [op for op in self.ops if op in ops], sorted(found)

    def _check_ahead(self, made: Any) -> None:
        loads = made.name == "cute.load" and self._space(made.operands[0]) == "gmem"
        if loads and not is_strong(made):
            return
        waits = made.name in _WAITS
        raise UnsupportedLoop(
            "what it copies depends on what an iteration has computed",
            made,
            "ask producer.try_acquire() at the beginning of the iteration" if waits else None,
        )

    def _check_here(self, made: Any) -> None:
        if made in self.produces:
            raise UnsupportedLoop(
                "what it computes needs a result of the part that loads ahead",
                made,
                "read stages by the consumer's own state: full.index of "
                "full = consumer.wait_and_advance()",
            )

    # The loop --------------------------------------------------------------------------------

    def build(self, iterations: int) -> None:
        """Replace the old loop by the new one. Raises UnsupportedLoop for too few stages."""
        self._check_stages(iterations)
        ir, loop = self.ir, self.loop
        here, ahead = self.here, self.ahead
        with loop.location, ir.InsertionPoint(loop):
            states = {i: self.initial[i] for i in ahead}
            for j in range(iterations):
                states = self._produce_if_there(self.further(self.lower, j), states)
            first = [self.initial[i] for i in here] + [states[i] for i in ahead]
            operands = [self.lower, self.upper, self.step, *first]
            kinds = [value.type for value in first]
            new = self.emit("scf.for", operands, kinds, self.attributes(), regions=1)
            places = [self.index_argument.location, *[loop.location] * len(kinds)]
            body = new.regions[0].blocks.append(self.index, *kinds, arg_locs=places)
            index, *values = body.arguments
            mine = dict(zip(here, values[: len(here)], strict=True))
            states = dict(zip(ahead, values[len(here) :], strict=True))
            with ir.InsertionPoint(body):
                states = self._produce_if_there(self.further(index, iterations), states)
                mine = self._cloned(self.here_ops, index, mine)
                self.emit("scf.yield", [*(mine[i] for i in here), *(states[i] for i in ahead)])
        # Of what both parts carry, both end with the same value.
        results = dict(zip([*here, *ahead], new.results, strict=True))
        for i, old in enumerate(loop.results):
            old.replace_all_uses_with(results[i])
        loop.erase()

    def _check_stages(self, iterations: int) -> None:
        for op in self.produces:
            for inner in walk(op):
                if ACQUIRES not in inner.attributes:
                    continue
                stages = self.ir.IntegerAttr(inner.attributes[ACQUIRES]).value
                if iterations >= stages:
                    raise UnsupportedLoop(
                        f"a load {iterations} iterations ahead waits for a stage that is still "
                        f"being read, as the pipeline has {stages}",
                        inner,
                        f"take at least {iterations + 1} stages, or prefetch_stages={stages - 1}",
                    )

    def _produce_if_there(self, place: tuple[Any, Any], states: dict[int, Any]) -> dict[int, Any]:
        """Build the producer's part at an index, if the loop gets there. Returns its state
        afterwards.
        """
        index, there = place
        ahead = sorted(states)
        kinds = [states[i].type for i in ahead]
        branch = self.emit("scf.if", [there], kinds, regions=2)
        yes, no = (region.blocks.append() for region in branch.regions)
        with self.ir.InsertionPoint(yes):
            after = self._cloned(self.ahead_ops, index, states)
            self.emit("scf.yield", [after[i] for i in ahead])
        with self.ir.InsertionPoint(no):
            self.emit("scf.yield", [states[i] for i in ahead])
        return dict(zip(ahead, branch.results, strict=True))

    def _cloned(self, ops: list[Any], index: Any, carried: dict[int, Any]) -> dict[int, Any]:
        """Clone a part of the body. Returns the carried values for the next iteration."""
        values = {self.index_argument: index}
        values.update((self.carried[i], value) for i, value in carried.items())
        for op in ops:
            new = op.clone()
            for inner in walk(new.operation):
                for i, operand in enumerate(inner.operands):
                    if operand in values:
                        inner.operands[i] = values[operand]
            values.update(zip(op.results, new.results, strict=True))
        return {i: values.get(self.yields[i], self.yields[i]) for i in carried}


def _root(value: Any) -> Any:
    """Find the allocation that an address is in."""
    while (made := defining(value)) is not None and made.name in ADDRESSES:
        value = made.operands[0]
    return value
