"""Control flow as `cf` blocks: the emitter protocol without structured ops.

for:    ^head(i, carried): cond_br i < stop, ^body, ^exit      ^body: ...; br ^head(i + step, ...)
while:  ^head(carried): ...test...; cond_br go, ^body(values), ^exit(values)
if:     cond_br c, ^then, ^else      ^then: ...; br ^join(values)      ^join(results)
"""

import contextlib


class CfEmitter:
    """See `basedsl.tracing.emitter.Emitter` for what each method promises."""

    float_checks = True  # floats raise where Python's do: division by zero, math domain errors

    def __init__(self, trace):
        self.trace = trace
        self.ir = trace.ir
        self.cf = trace.bindings.cf
        self.arith = trace.bindings.arith

    def for_(self, start, stop, step, init, body, hints, loc, *, unsigned):
        predicate = self.arith.CmpIPredicate.ult if unsigned else self.arith.CmpIPredicate.slt
        with self._undone_on_error():
            types = [start.type, *(v.type for v in init)]
            head, inside, exit_ = self._block(types), self._block([]), self._block([])
            self.cf.BranchOp([start, *init], head, loc=loc)
            self.trace.move_to(head)
            index, *carried = head.arguments
            go = self.arith.CmpIOp(predicate, index, stop, loc=loc).result
            self.cf.CondBranchOp(go, [], [], inside, exit_, loc=loc)
            self.trace.move_to(inside)
            following = body(index, carried)
            after = self.arith.AddIOp(index, step, loc=loc).result
            self.cf.BranchOp([after, *following], head, loc=loc)
            self.trace.move_to(exit_)
            return carried

    def while_(self, init, test, body, loc):
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

    def if_(self, condition, then, orelse, merge, loc):
        with self._undone_on_error():
            blocks = self._block([]), self._block([])
            self.cf.CondBranchOp(condition, [], [], *blocks, loc=loc)
            outcomes, ends = [], []
            for block, run in zip(blocks, (then, orelse), strict=True):
                self.trace.move_to(block)
                outcomes.append(run())
                ends.append(self.ir.InsertionPoint.current.block)
            join = None
            for end, values_of in zip(ends, merge(*outcomes), strict=True):
                self.trace.move_to(end)
                values = list(values_of())
                join = join or self._block([v.type for v in values])
                self.cf.BranchOp(values, join, loc=loc)
            self.trace.move_to(join)
            return list(join.arguments)

    def assert_(self, condition, message, loc):
        self.cf.AssertOp(condition, message, loc=loc)

    def _block(self, types):
        region = self.ir.InsertionPoint.current.block.region
        return region.blocks.append(*types, arg_locs=[self.trace.loc()] * len(types))

    @contextlib.contextmanager
    def _undone_on_error(self):
        """Take away what was built if tracing a body fails."""
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
