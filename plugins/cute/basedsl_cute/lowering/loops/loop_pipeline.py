"""The step `pipeline-loops`: loops with `prefetch_stages=n` become software pipelines.

A loop whose body copies tiles from global to shared memory, waits for all threads, and computes
from them,

    for i in range(lb, ub, step):          # prefetch_stages = n
        COPY(i) -> tile;  barrier;  REST(i)

copies n iterations ahead, into n + 1 tiles that take turns:

    for j in 0 .. n-1:                     # unrolled
        if lb + j step < ub: COPY(lb + j step) -> tile[j]
        commit
    for i in range(lb, ub, step):
        wait for all but n-1 groups;  barrier
        if i + n step < ub: COPY(i + n step) -> tile[(i/step + n) mod (n+1)]
        commit;  REST(i) from tile[(i/step) mod (n+1)]

At the barrier of i everyone is through with i-1, whose tile is the one that is copied to next.
Copies become cp.async (sm_80). TMA loads complete an mbarrier for each tile instead of a group;
one thread issues them. `loop_analysis` decides whether the loop is one of this kind. Loops over the
program's own pipeline, whose tiles and barriers are there already, are `producer_loop`'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from basedsl import DSLTypeError, PipelineContext, Snapshot, span_of_location
from basedsl_cute.dialect import CuteDialect, define
from basedsl_cute.dialect.attributes import UNBOUND_BYTES
from basedsl_cute.dialect.ops import AllocSmem, Barrier, Copy, TensorIterator, View
from basedsl_cute.lowering.loops.loop_analysis import (
    PREFETCH,
    TMA_LOAD,
    CopyLoop,
    UnsupportedLoop,
    analyse,
    defining,
    walk,
)
from basedsl_cute.lowering.loops.loop_builder import LoopBuilder
from basedsl_cute.lowering.loops.producer_loop import ProducerLoop, has_producer

_MAX_STAGES = 16
_SUSPEND_TICKS = 0x989680  # nanoseconds a wait may sleep, as in arch.mbarrier


def pipeline_loops(op: Any, context: PipelineContext) -> Snapshot | None:
    """Run the step `pipeline-loops` on a module. Returns its input if no loop asks for it."""
    bindings = context.bindings
    ir = bindings.ir
    found: list[Any] = []
    unbound: list[Any] = []

    def collect(inner: Any) -> Any:
        if inner.name == "scf.for" and PREFETCH in inner.attributes:
            found.append(inner)
        if inner.name == TMA_LOAD and UNBOUND_BYTES in inner.attributes:
            unbound.append(inner)
        return ir.WalkResult.ADVANCE

    for module in op.regions[0].blocks[0].operations:
        if module.operation.name == "gpu.module":
            module.operation.walk(collect, ir.WalkOrder.POST_ORDER)
    for load in unbound:
        _check_place(load, ir)
    if not found:
        return context.input
    for loop in found:
        stages = ir.IntegerAttr(loop.attributes[PREFETCH]).value
        if not 0 <= stages <= _MAX_STAGES:
            raise DSLTypeError(
                f"prefetch_stages is {stages}: it counts the iterations that copies run ahead, 0 "
                f"to {_MAX_STAGES}",
                span_of_location(loop.location),
            )
        if stages:
            try:
                _run_ahead(define(bindings), loop, stages)
            except UnsupportedLoop as refused:
                raise _error(loop, refused) from None
        else:
            del loop.attributes[PREFETCH]
    return None


def _run_ahead(dialect: CuteDialect, loop: Any, stages: int) -> None:
    if has_producer(loop):
        ProducerLoop(dialect, loop).build(stages)
    else:
        _Pipeline(dialect, loop, analyse(dialect, loop), stages).build()


def _check_place(load: Any, ir: Any) -> None:
    """Check that a TMA load without a barrier is in a loop that gives it one."""
    parent = load.parent
    while parent is not None and PREFETCH not in parent.operation.attributes:
        parent = parent.operation.parent
    if parent is None or not ir.IntegerAttr(parent.operation.attributes[PREFETCH]).value:
        raise DSLTypeError(
            "a TMA load needs the mbarrier that it completes: tma_bar_ptr=",
            span_of_location(load.location),
            hint="or a loop that waits for it: cute.range(..., prefetch_stages=1) or more",
        )


def _error(loop: Any, refused: UnsupportedLoop) -> DSLTypeError:
    where = loop.location if refused.op is None else refused.op.location
    return DSLTypeError(
        f"this loop cannot run its copies ahead (prefetch_stages=): {refused.why}",
        span_of_location(where),
        hint=refused.hint or "take prefetch_stages= away, or write the pipeline by hand",
        notes=(("the loop", span_of_location(loop.location)),),
    )


class _Pipeline(LoopBuilder):
    """Builds the pipeline of one loop, and erases the loop."""

    def __init__(self, dialect: CuteDialect, loop: Any, plan: CopyLoop, stages: int) -> None:
        super().__init__(dialect, loop)
        self.plan = plan
        self.stages = stages
        self.tiles: list[tuple[Any, Any, int]] = []  # old allocation, new one, elements between
        self.barriers: Any = None  # the address of the mbarriers, one for each tile

    def build(self) -> None:
        ir, loop, plan = self.ir, self.loop, self.plan
        with loop.location:
            for allocation in plan.tiles:
                self._allocate(allocation)
            with ir.InsertionPoint(loop):
                if plan.loads:
                    self._make_barriers()
                elif self._repeats():  # threads may still use the last tiles of the time before
                    Barrier(self.dialect)
                for j in range(self.stages):
                    self._copy_if_there(self.further(self.lower, j), self.number(j))
                    self.emit("nvvm.cp.async.commit.group")
                new = self._loop()
                if plan.loads:
                    self._end_barriers()
        for old, result in zip(loop.results, new.results, strict=False):
            old.replace_all_uses_with(result)
        loop.erase()
        for op in reversed(plan.outside):
            if not any(list(result.uses) for result in op.results):
                op.erase()
        for old, _, _ in self.tiles:
            if not list(old.uses):
                old.owner.erase()

    # Tiles -----------------------------------------------------------------------------------

    def _allocate(self, old: Any) -> None:
        """Allocate one tile more than copies are ahead. Tiles are a whole swizzle period apart."""
        record = self.dialect.record_of(old)
        op = defining(old)
        alloc = AllocSmem.of(self.dialect, op)
        period = max(record.alignment, 1024 if self.plan.is_swizzled(old) else 16)
        apart = -(-alloc.bytes // period) * period
        size = apart * (self.stages + 1)
        with self.ir.InsertionPoint(op), op.location:
            new = AllocSmem(self.dialect, type=old.type, bytes=size, name=alloc.name).memref
        self.tiles.append((old, new, apart * 8 // record.element_bits))

    def _tiles_at(self, number: Any) -> dict[Any, Any]:
        """Compute each allocation's tile `number`."""
        out = {}
        for old, new, apart in self.tiles:
            offset = self.emit("arith.muli", [number, self.number(apart)], [self.i32]).result
            out[old] = View(self.dialect, source=new, offset=offset, type=old.type).view
        return out

    # The loop --------------------------------------------------------------------------------

    def _loop(self) -> Any:
        ir, loop, plan = self.ir, self.loop, self.plan
        # Carried besides: the number of the tile, and the parity of its barrier's phase.
        own = [self.number(0), self.number(0)]
        operands = [self.lower, self.upper, self.step, *self.initial, *own]
        kinds = [value.type for value in operands[3:]]
        new = self.emit("scf.for", operands, kinds, self.attributes(), regions=1)
        old_body = loop.regions[0].blocks[0]
        places = [argument.location for argument in old_body.arguments]
        types = [argument.type for argument in old_body.arguments]
        body = new.regions[0].blocks.append(
            *types, self.i32, self.i32, arg_locs=[*places, loop.location, loop.location]
        )
        *arguments, current, parity = body.arguments
        with ir.InsertionPoint(body):
            copied = dict(zip(old_body.arguments, arguments, strict=True))
            copied.update(self._tiles_at(current))
            copier = _Copier(self.dialect, plan, copied)
            for op in plan.rest:
                if op == plan.barrier:
                    self._wait(current, parity)
                    copier.copy(op)
                    ahead = self.further(arguments[0], self.stages)
                    # n tiles on is the one before this, of n + 1.
                    self._copy_if_there(ahead, self._stepped(current, self.stages))
                    self.emit("nvvm.cp.async.commit.group")
                else:
                    copier.copy(op)
            terminator = list(old_body.operations)[-1]
            values = [copier.value(operand) for operand in terminator.operands]
            further = self._stepped(current, 1)
            wrapped = self.compare("eq", further, self.number(0))
            flip = self.emit("arith.extui", [wrapped], [self.i32]).result
            flipped = self.emit("arith.xori", [parity, flip], [self.i32]).result
            self.emit("scf.yield", [*values, further, flipped])
        return new

    def _wait(self, current: Any, parity: Any) -> None:
        """Wait for the copies of this iteration."""
        attributes = {"n": self.ir.IntegerAttr.get(self.i32, self.stages - 1)}
        self.emit("nvvm.cp.async.wait.group", [], [], attributes)
        if self.plan.loads:
            ticks = self.number(_SUSPEND_TICKS)
            operands = [self._barrier(current), parity, ticks]
            self.emit("nvvm.mbarrier.try_wait.parity", operands)

    # Barriers of TMA loads -------------------------------------------------------------------

    def _repeats(self) -> bool:
        """True if the loop is in another loop."""
        parent = self.loop.operation.parent
        while parent is not None and parent.operation.name != "gpu.func":
            if parent.operation.name in ("scf.for", "scf.while"):
                return True
            parent = parent.operation.parent
        return False

    def _make_barriers(self) -> None:
        count = self.stages + 1
        with self.ir.InsertionPoint(defining(self.plan.tiles[0])):
            i64 = self.ir.IntegerType.get_signless(64)
            kind = self.dialect.memref_type(i64, "smem", f"{count}:1", 16)
            words = AllocSmem(self.dialect, type=kind, bytes=8 * count, name="barriers").memref
        self.barriers = TensorIterator(self.dialect, source=words).pointer
        with self._one_thread():
            for j in range(count):
                at = self._barrier(self.number(j))
                self.emit("nvvm.mbarrier.init", [at, self.number(1)])
        self.emit("nvvm.fence.mbarrier.init")
        Barrier(self.dialect)

    def _end_barriers(self) -> None:
        """Invalidate the barriers when all threads are past the last wait: their memory may be
        reused.
        """
        Barrier(self.dialect)
        with self._one_thread():
            for j in range(self.stages + 1):
                self.emit("nvvm.mbarrier.inval", [self._barrier(self.number(j))])

    def _barrier(self, number: Any) -> Any:
        attributes = {
            "elem_type": self.ir.TypeAttr.get(self.ir.IntegerType.get_signless(64)),
            "rawConstantIndices": self.ir.DenseI32ArrayAttr.get([-(2**31)]),
        }
        pointer = self.barriers.type
        return self.emit(
            "llvm.getelementptr", [self.barriers, number], [pointer], attributes
        ).result

    @contextlib.contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Make what is built inside run in the first thread of the block."""
        ids = [self.emit(f"nvvm.read.ptx.sreg.tid.{axis}", [], [self.i32]).result for axis in "xyz"]
        any_bit = self.emit("arith.ori", ids[:2], [self.i32]).result
        any_bit = self.emit("arith.ori", [any_bit, ids[2]], [self.i32]).result
        first = self.compare("eq", any_bit, self.number(0))
        branch = self.emit("scf.if", [first], [], regions=2)
        with self.ir.InsertionPoint(branch.regions[0].blocks.append()):
            yield
            self.emit("scf.yield")

    def _stepped(self, number: Any, by: int) -> Any:
        """Compute (number + by) mod (stages + 1), for by in 0..stages."""
        count = self.number(self.stages + 1)
        further = self.emit("arith.addi", [number, self.number(by)], [self.i32]).result
        wraps = self.compare("sge", further, count)
        back = self.emit("arith.subi", [further, count], [self.i32]).result
        return self.emit("arith.select", [wraps, back, further], [self.i32]).result

    def _copy_if_there(self, ahead: tuple[Any, Any], number: Any) -> None:
        index, there = ahead
        branch = self.emit("scf.if", [there], [], regions=2)
        with self.ir.InsertionPoint(branch.regions[0].blocks.append()):
            old_body = self.loop.regions[0].blocks[0]
            copied = {old_body.arguments[0]: index, **self._tiles_at(number)}
            copier = _Copier(self.dialect, self.plan, copied)
            loads = []
            for op in self.plan.copying:
                if op in self.plan.loads:
                    loads.append(op)
                else:
                    copier.copy(op)
            if loads:
                self._issue(loads, copier, number)
            self.emit("scf.yield")

    def _issue(self, loads: list[Any], copier: _Copier, number: Any) -> None:
        """Issue the TMA loads from one thread, which first announces their bytes."""
        total = sum(self.ir.IntegerAttr(op.attributes[UNBOUND_BYTES]).value for op in loads)
        with self._one_thread():
            barrier = self._barrier(number)
            self.emit("nvvm.mbarrier.arrive.expect_tx", [barrier, self.number(total)])
            for op in loads:
                made = copier.copy(op)
                sizes = list(self.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
                made.operands[sum(sizes[:3])] = barrier
                del made.attributes[UNBOUND_BYTES]


class _Copier:
    """Clones ops of the loop, with other values for some, at the insertion point.

    What is derived from a tile before the loop is derived again, from the tile of the iteration.
    """

    def __init__(self, dialect: CuteDialect, plan: CopyLoop, values: dict[Any, Any]) -> None:
        self.dialect = dialect
        self.ir = dialect.ir
        self.plan = plan
        self.values = values

    def value(self, old: Any) -> Any:
        """Return the value that stands for one of the old loop."""
        if old not in self.values and old in self.plan.derived_outside:
            self.copy(defining(old))
        return self.values.get(old, old)

    def copy(self, op: Any) -> Any:
        """Clone an op."""
        pair = self.plan.stores.get(op)
        if pair is not None:
            self._copy_elements(op, pair)
            return None
        for each in walk(op):
            for operand in each.operands:
                self.value(operand)  # which may have to be made first
        new = op.clone()
        for each in list(walk(new.operation)):
            for i, operand in enumerate(each.operands):
                if operand in self.values:
                    each.operands[i] = self.values[operand]
            if each.name == "cute.copy":
                self._make_asynchronous(each)
        for old, made in zip(op.results, new.results, strict=True):
            self.values[old] = made
        return new

    def _make_asynchronous(self, op: Any) -> None:
        copy = Copy.of(self.dialect, op)
        source, target, bits = copy.source, copy.target, copy.bits
        spaces = [self.dialect.record_of(value).space for value in (source, target)]
        if spaces != ["gmem", "smem"] or copy.atom != "universal":
            return
        if copy.predicate is None:
            op.attributes["atom"] = self.ir.StringAttr.get("cp_async")
            if "cache" in op.attributes:
                del op.attributes["cache"]
            return
        # A false predicate means: leave the tile alone. For cp.async it would mean zeros.
        with self.ir.InsertionPoint(op), op.location:
            branch = self.ir.Operation.create("scf.if", operands=[copy.predicate], regions=2)
            with self.ir.InsertionPoint(branch.regions[0].blocks.append()):
                Copy(self.dialect, source=source, target=target, atom="cp_async", bits=bits)
                self.ir.Operation.create("scf.yield")
        op.erase()

    def _copy_elements(self, op: Any, load: Any) -> None:
        """Build a copy in place of a store of what has just been loaded."""
        with op.location:
            bits = self.plan.bits(load)
            source = self._element(load.operands[0], load.operands[1], bits)
            target = self._element(op.operands[1], op.operands[2], bits)
            Copy(self.dialect, source=source, target=target, atom="cp_async", bits=bits)

    def _element(self, memory: Any, index: Any, bits: int) -> Any:
        """View the tensor of one access at `index`; its alignment has been checked."""
        memory, index = self.value(memory), self.value(index)
        record = self.dialect.record_of(memory)
        count = bits // record.element_bits
        layout = f"{count}:1" if count > 1 else "1:0"
        kind = self.dialect.memref_type(record.element, record.space, layout, bits // 8)
        return View(self.dialect, source=memory, offset=index, type=kind).view
