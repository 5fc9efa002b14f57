"""Wide stores of elements that each have a predicate: loops around an `if` with a single store.

    for i in range(16):
        if predicates[i]:
            out[i] = values[i]

Neither LLVM nor ptxas joins such stores where predicates may differ, so each instruction of a warp
writes a part of many sectors of 32 bytes. Here the loop takes as many iterations at a time as 16
bytes have elements. One store writes them where, at run time, all predicates hold, the elements are
neighbours and the first is aligned; otherwise the stores that were there do. Once LLVM has unrolled
the loop, it knows most of this.
"""

from __future__ import annotations

from typing import Any

from basedsl import Bindings
from basedsl_cute.lowering.kernel.builder import Builder

# Operations without effects and without undefined behaviour: they may run where the `if` does not.
_PURE = frozenset(
    """arith.constant arith.addi arith.subi arith.muli arith.andi arith.ori arith.xori arith.shli
    arith.shrui arith.shrsi arith.cmpi arith.select arith.extui arith.extsi arith.trunci
    arith.index_cast llvm.getelementptr""".split()
)
# In the branch of the wide store these may be too: the original has them under the same conditions.
_VALUES = _PURE | frozenset(
    """arith.addf arith.subf arith.mulf arith.negf arith.cmpf arith.maximumf arith.minimumf
    arith.extf arith.truncf arith.bitcast arith.sitofp arith.uitofp""".split()
)
_BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1}
_WIDEST = 16


def join_stores(module: Any, bindings: Bindings) -> None:
    """Rewrite the loops of this form in the kernels of `module`."""
    builder = Builder(bindings)
    ir = builder.ir
    loops: list[Any] = []

    def collect(op: Any) -> Any:
        if op.name == "scf.for" and not len(op.results):
            loops.append(op)
        return ir.WalkResult.ADVANCE

    for inner in module.regions[0].blocks[0].operations:
        if inner.operation.name == "gpu.module":
            inner.operation.walk(collect, ir.WalkOrder.PRE_ORDER)
    for op in loops:
        if len(op.regions[0].blocks[0].operations) > 1:
            loop = _PredicatedStores(builder, op)
            if loop.has_the_form():
                loop.widen()


class _PredicatedStores:
    """A loop of this form. `before` are the operations before its `if`, the `branch`; `inside` are
    those before the `store` in it; `place` computes the store's address from one index; `width` is
    the number of elements that are joined.
    """

    def __init__(self, builder: Builder, op: Any) -> None:
        self.builder = builder
        self.ir = builder.ir
        self.op = op
        *self.before, self.branch, _ = _operations(op.regions[0].blocks[0])
        self.inside: list[Any] = []
        self.store: Any = None
        self.place: Any = None
        self.size = self.width = 0

    def has_the_form(self) -> bool:
        branch = self.branch
        if branch.name != "scf.if" or len(branch.results) or len(branch.regions[1].blocks):
            return False
        *self.inside, self.store = _operations(branch.regions[0].blocks[0])[:-1] or (branch,)
        return self._stores_one_element() and self._is_pure() and self._divides()

    def _stores_one_element(self) -> bool:
        """True for a store of global memory at `base[index]`, where the loop computes `index`."""
        if self.store.name != "llvm.store" or {*_names(self.store)} - {"alignment", "ordering"}:
            return False
        value, pointer = self.store.operands
        self.size = _BYTES.get(str(value.type), _WIDEST)
        place = self.place = pointer.owner
        if str(pointer.type) != "!llvm.ptr<1>" or _name(place) != "llvm.getelementptr":
            return False
        own = {*self.before, *self.inside}
        # An index that the loop does not compute is one element for all.
        return (
            len(place.operands) == 2
            and str(place.operands[1].type) == "i32"
            and place.operands[1].owner in own
            and place.attributes["elem_type"].value == value.type
            and place in own
            and place.operands[0].owner not in own
        )

    def _is_pure(self) -> bool:
        loads = [one for one in (*self.before, *self.inside) if one.name == "llvm.load"]
        return (
            all(map(_is_private, loads))
            and all(one in loads or one.name in _PURE for one in self.before)
            and all(one in loads or one.name in _VALUES for one in self.inside)
            and all(one.name in _PURE for one in self._address())
        )

    def _address(self) -> list[Any]:
        """The operations inside of the `if` that compute the store's address, in order."""
        needed = {self.place}
        for one in reversed(self.inside):
            if one in needed:
                needed |= {operand.owner for operand in one.operands}
        return [one for one in self.inside if one in needed]

    def _divides(self) -> bool:
        """True if the number of iterations is a multiple of a `width` of two or more."""
        lower, upper, step = (_constant(value) for value in self.op.operands)
        if lower is None or upper is None or step != 1 or upper <= lower:
            return False
        self.width = _WIDEST // self.size
        while (upper - lower) % self.width:
            self.width //= 2
        return self.width > 1

    # The loop that replaces it ------------------------------------------------------------------

    def widen(self) -> None:
        """Replace the loop."""
        make, op = self.builder, self.op
        make.at(op)
        lower, upper, step = op.operands
        attributes = {name: op.attributes[name] for name in _names(op)}
        wide_step = make.constant(self.width, step.type)
        new = make.emit("scf.for", [], [lower, upper, wide_step], attributes, regions=1)
        body = new.regions[0].blocks.append(lower.type, arg_locs=[op.location])
        with make.inside(body):
            self._fill(body.arguments[0])
            make.emit("scf.yield")
        op.erase()

    def _fill(self, first: Any) -> None:
        """Build the body: of `width` iterations the conditions, then both ways to store."""
        make, counter = self.builder, self.op.regions[0].blocks[0].arguments[0]
        maps: list[dict[Any, Any]] = []
        conditions: list[Any] = []
        places: list[Any] = []  # tests of the addresses
        begin: Any = None  # the first index
        for k in range(self.width):
            known = {counter: self._plus(first, k)}
            for one in self.before:
                self._copy(one, known)
            maps.append(known)
            conditions.append(known.get(self.branch.operands[0], self.branch.operands[0]))
            there = dict(known)
            for one in self._address():
                self._copy(one, there)
            index = there[self.place.operands[1]]
            if k:
                places.append(self._equal(index, self._plus(begin, k)))
            else:
                begin = index
                address = make.emit("llvm.ptrtoint", [make.i64], [there[self.place.results[0]]])
                mask = make.constant(self.width * self.size - 1, make.i64)
                over = make.emit("arith.andi", [make.i64], [address, mask])
                places.append(self._equal(over, make.constant(0, make.i64)))
        # An address may be undefined where the original does not compute it: not an `and`.
        holds, fits = self._all(conditions), self._all(places)
        no = make.constant(0, holds.type)
        ok = make.emit("arith.select", [holds.type], [holds, fits, no])
        branch = make.emit("scf.if", [], [ok], regions=2)
        wide, single = (region.blocks.append() for region in branch.regions)
        with make.inside(wide):
            self._store_all(maps)
            make.emit("scf.yield")
        with make.inside(single):
            for known in maps:
                self._copy(self.branch, known)
            make.emit("scf.yield")

    def _all(self, tests: list[Any]) -> Any:
        found = tests[0]
        for test in tests[1:]:
            found = self.builder.emit("arith.andi", [found.type], [found, test])
        return found

    def _plus(self, value: Any, k: int) -> Any:
        if k == 0:
            return value
        more = self.builder.constant(k, value.type)
        return self.builder.emit("arith.addi", [value.type], [value, more])

    def _store_all(self, maps: list[dict[Any, Any]]) -> None:
        make, values, pointer = self.builder, [], None
        for known in maps:
            there = dict(known)
            for one in self.inside:
                self._copy(one, there)
            value, place = self.store.operands
            values.append(there.get(value, value))
            pointer = there[place] if pointer is None else pointer
        vector = self.ir.VectorType.get([self.width], values[0].type)
        joined = make.emit("vector.from_elements", [vector], values)
        aligned = {"alignment": make.integer(self.width * self.size)}
        make.emit("llvm.store", [], [joined, pointer], aligned)

    def _equal(self, x: Any, y: Any) -> Any:
        i1 = self.ir.IntegerType.get_signless(1)
        return self.builder.emit("arith.cmpi", [i1], [x, y], {"predicate": self.builder.integer(0)})

    def _copy(self, op: Any, known: dict[Any, Any]) -> None:
        """Append a copy of `op`, with the values that `known` has for those of the old loop."""
        copy = op.clone(self.builder._ip)

        def use(one: Any) -> Any:
            for k, operand in enumerate(one.operands):
                if operand in known:
                    one.operands[k] = known[operand]
            return self.ir.WalkResult.ADVANCE

        copy.walk(use, self.ir.WalkOrder.PRE_ORDER)
        known.update(zip(op.results, copy.results, strict=True))


def _operations(block: Any) -> list[Any]:
    return [one.operation for one in block.operations]


def _name(owner: Any) -> str:
    """The name of the operation that a value is the result of; "" for a block's argument."""
    return str(getattr(owner, "name", ""))


def _names(op: Any) -> list[str]:
    return [item if isinstance(item, str) else item.name for item in op.attributes]


def _constant(value: Any) -> int | None:
    owner = value.owner
    if _name(owner) != "arith.constant":
        return None
    return int(owner.attributes["value"].value)


def _is_private(load: Any) -> bool:
    """True for a load from memory of the thread that its kernel allocates."""
    if {*_names(load)} - {"alignment", "ordering"}:
        return False
    owner = load.operands[0].owner
    while _name(owner) == "llvm.getelementptr":
        owner = owner.operands[0].owner
    return _name(owner) == "llvm.alloca"
