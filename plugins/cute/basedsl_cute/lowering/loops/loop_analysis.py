"""Analysis of loops whose copies shall run ahead: their parts, or why it is impossible.

Copies of iteration i + n happen while iteration i computes. That means the same if

- what is copied, and from where, follows from the index and from values that the loop does not
  change, and the loop writes no global memory that it might copy;
- registers that both need belong to the copies alone;
- every iteration writes the same bytes of the tiles, so that what an iteration reads is what it
  has copied itself: where it writes does not depend on the index, nor (zeros apart) whether;
- nobody touches the tiles outside of the loop;
- a barrier of all threads lies between the copies and the uses, at which the pipeline waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from basedsl_cute.dialect import CuteDialect

PREFETCH = "basedsl.prefetch_stages"


class UnsupportedLoop(Exception):
    """Raised where a loop cannot be pipelined, with the reason and the op that is in the way."""

    def __init__(self, why: str, op: Any = None, hint: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.op = op
        self.hint = hint


@dataclass
class CopyLoop:
    """A loop that copies, waits, and computes. Ops are those of its body's top level, in order."""

    dialect: CuteDialect
    tiles: list[Any] = field(default_factory=list)  # allocations that it copies into
    copying: list[Any] = field(default_factory=list)  # the copies and what they need
    loads: list[Any] = field(default_factory=list)  # those by TMA
    rest: list[Any] = field(default_factory=list)  # all else, with the barrier
    barrier: Any = None
    stores: dict[Any, Any] = field(default_factory=dict)  # store -> the load it stores
    derived: set[Any] = field(default_factory=set)  # values computed from tiles' addresses
    outside: list[Any] = field(default_factory=list)  # ops before the loop that compute such
    derived_outside: set[Any] = field(default_factory=set)

    def bits(self, load: Any) -> int:
        """Return the number of bits that one access reads."""
        kind = load.results[0].type
        count = kind.shape[0] if hasattr(kind, "shape") else 1
        record = self.dialect.record(load.operands[0].type)
        assert record is not None
        return int(count * record.element_bits)

    def is_swizzled(self, tile: Any) -> bool:
        """Return True if accesses of a tile may be swizzled by their addresses."""
        records = [self.dialect.record(value.type) for value in (tile, *self.derived)]
        return any("S<" in record.layout for record in records if record is not None)


_PURE_DIALECTS = ("arith.", "math.", "vector.", "index.")
_PURE = {
    "cute.view", "cute.recast", "cute.iterator", "cute.make_memref", "llvm.ptrtoint",
    "llvm.inttoptr", "llvm.addrspacecast", "llvm.getelementptr", "llvm.mlir.undef",
    "llvm.insertvalue", "llvm.extractvalue", "llvm.mlir.constant", "llvm.mlir.zero",
    "nvvm.shfl.sync", "nvvm.mapa",
}  # fmt: skip
# What the rest of the loop may do besides: nothing that the copies could see.
_HARMLESS = {
    "cute.load", "cute.store", "cute.copy", "cute.gemm", "cute.wgmma", "cute.alloc_rmem",
    "cute.barrier", "nvvm.barrier", "nvvm.bar.warp.sync", "nvvm.fence.proxy", "nvvm.elect.sync",
    "nvvm.vote.sync", "nvvm.redux.sync", "nvvm.match.sync", "nvvm.wgmma.fence.aligned",
    "nvvm.wgmma.commit.group.sync.aligned", "nvvm.wgmma.wait.group.sync.aligned", "gpu.printf",
    "cf.assert", "scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition",
}  # fmt: skip
_WAITS = ("nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group", "nvvm.cp.async.wait.all")
_COPY_BITS = (32, 64, 128)
ADDRESSES = (
    "cute.view", "cute.recast", "cute.iterator", "llvm.ptrtoint", "llvm.inttoptr", "nvvm.mapa",
)  # fmt: skip
TMA_LOAD = "nvvm.cp.async.bulk.tensor.shared.cluster.global"


def defining(value: Any) -> Any:
    """Return the op that computes a value; None for an argument of a block."""
    owner = value.owner
    return None if hasattr(owner, "arguments") else owner.operation


def analyse(dialect: CuteDialect, loop: Any) -> CopyLoop:
    """Find the parts of a loop that can be pipelined. Raises UnsupportedLoop for another."""
    return _Analysis(dialect, loop).run()


class _Analysis:
    def __init__(self, dialect: CuteDialect, loop: Any) -> None:
        self.dialect = dialect
        self.ir = dialect.ir
        self.loop = loop
        self.block = loop.regions[0].blocks[0]
        self.ops = [op.operation for op in self.block.operations][:-1]
        self.place = {op: i for i, op in enumerate(self.ops)}
        self.plan = CopyLoop(dialect)
        self.private: set[Any] = set()  # accesses of registers that belong to the copies

    def run(self) -> CopyLoop:
        roots = [op for op in self.ops if self._has_copies(op)]
        if not roots:
            raise UnsupportedLoop("it copies nothing from global to shared memory")
        for op in roots:
            self._check_copies(op)
        waits = [op for op in self.ops if op.name in _WAITS]
        for op in waits:
            if op.name == "nvvm.cp.async.wait.group" and self._number(op, "n"):
                raise UnsupportedLoop("it leaves copies pending: it is a pipeline already", op)
        for tile in self.plan.tiles:
            self._follow(tile)
        self._slice(roots)
        self._barrier(roots)
        dropped = {*roots, *waits, *self.private}
        self.plan.rest = [op for op in self.ops if op not in dropped]
        self._check_rest()
        return self.plan

    # Copies ----------------------------------------------------------------------------------

    def _space(self, value: Any) -> str:
        record = self.dialect.record(value.type)
        return "" if record is None else record.space

    def _is_copy(self, op: Any) -> bool:
        if op.name == TMA_LOAD:
            return True
        if op.name == "cute.copy":
            spaces = [self._space(value) for value in list(op.operands)[:2]]
            return spaces == ["gmem", "smem"]
        return self._loaded_by(op) is not None

    def _loaded_by(self, op: Any) -> Any:
        """Find the load of global memory whose result `op` stores to shared memory."""
        if op.name != "cute.store" or self._space(op.operands[1]) != "smem":
            return None
        load = defining(op.operands[0])
        if load is None or load.name != "cute.load" or self._space(load.operands[0]) != "gmem":
            return None
        if is_strong(load) or is_strong(op):
            return None
        return load

    def _has_copies(self, op: Any) -> bool:
        return any(self._is_copy(inner) for inner in walk(op))

    def _check_copies(self, op: Any) -> None:
        """Check an op of the body that copies: by itself, or in branches and loops of its own."""
        for inner in walk(op):
            if inner.name in ("scf.if", "scf.for"):
                bounds = list(inner.operands)[: 1 if inner.name == "scf.if" else 3]
                if inner.results:
                    raise UnsupportedLoop("its copies are mixed with computations", inner)
                for value in bounds:
                    if not self._is_fixed(value):
                        raise UnsupportedLoop(
                            "which parts are copied depends on the iteration, so a part may be "
                            "left from an earlier one",
                            inner,
                            "let cp.async write zeros instead: CopyG2SOp(zero_fill=True)",
                        )
            elif self._is_copy(inner):
                self._check_copy(inner, inner is op or inner == op)
            elif not (is_pure(inner) or inner.name in ("scf.yield", "cute.load")):
                raise UnsupportedLoop("its copies are mixed with computations", inner)

    def _check_copy(self, op: Any, at_top: bool) -> None:
        if op.name == TMA_LOAD:
            if not at_top:
                raise UnsupportedLoop(
                    "not all threads of the block call this TMA copy",
                    op,
                    "take it out of the branch: one thread of the block issues it",
                )
            target, bits = op.operands[0], _COPY_BITS[0]
            self.plan.loads.append(op)
        elif op.name == "cute.copy":
            target = op.operands[1]
            bits = self._number(op, "bits")
            predicate = list(op.operands)[2:]
            zeros = self.ir.StringAttr(op.attributes["atom"]).value == "cp_async"
            if predicate and not zeros and not self._is_fixed(predicate[0]):
                raise UnsupportedLoop(
                    "whether a part is copied depends on the iteration",
                    op,
                    "let cp.async write zeros instead: CopyG2SOp(zero_fill=True)",
                )
        else:
            load = self._loaded_by(op)
            target = op.operands[1]
            bits = self.plan.bits(load)
            if not at_top or len(list(load.results[0].uses)) > 1 or load not in self.place:
                raise UnsupportedLoop("a value that it copies is used for something else too", op)
            for access in (load, op):
                if self._alignment(access) * 8 < bits:
                    raise UnsupportedLoop(
                        f"this access is not known to be aligned to {bits // 8} bytes", op
                    )
            if not self._is_fixed(op.operands[2]):
                raise UnsupportedLoop("where it copies to depends on the iteration", op)
            self.plan.stores[op] = load
        if bits not in _COPY_BITS:
            raise UnsupportedLoop(
                f"a copy of {bits} bits cannot run ahead: cp.async has 32, 64 and 128",
                op,
                "copy several elements at once",
            )
        if not self._is_fixed(target):
            raise UnsupportedLoop("where it copies to depends on the iteration", op)
        self._add_tile(target, op)

    def _alignment(self, access: Any) -> int:
        if "alignment" in access.attributes:
            return self._number(access, "alignment")
        memory = list(access.operands)[-2]
        record = self.dialect.record(memory.type)
        assert record is not None
        return max(1, record.element_bits // 8)

    def _add_tile(self, target: Any, op: Any) -> None:
        value = target
        while defining(value) is not None and defining(value).name in ADDRESSES:
            value = defining(value).operands[0]
        made = defining(value)
        if made is None or made.name != "cute.alloc_smem":
            raise UnsupportedLoop(
                "where it copies to is not plainly a tile allocated in this kernel",
                op,
                "allocate the tile with SmemAllocator.allocate_tensor before the loop",
            )
        if value not in self.plan.tiles:
            self.plan.tiles.append(value)

    # Values ----------------------------------------------------------------------------------

    def _is_fixed(self, value: Any) -> bool:
        """Return True if a value is the same in every iteration, and every time the loop is run."""
        op = defining(value)
        if op is None:
            owner = value.owner.owner.operation
            if owner.name == "gpu.func":
                return True
            # The index of a loop among the copies takes the same values in every iteration.
            is_index = owner.name == "scf.for" and value == value.owner.arguments[0]
            among = owner != self.loop and self._is_inside(owner)
            return bool(
                is_index and among and all(self._is_fixed(v) for v in list(owner.operands)[:3])
            )
        if not is_pure(op) and not op.name.startswith("nvvm.read.ptx.sreg"):
            if op.name in ("cute.alloc_smem", "gpu.thread_id", "gpu.block_id", "gpu.block_dim"):
                return True
            parent = op.parent.operation
            return bool(parent.name == "gpu.func")  # runs once
        return all(self._is_fixed(operand) for operand in op.operands)

    def _is_inside(self, op: Any) -> bool:
        while op is not None and op.name != "gpu.func":
            if op == self.loop:
                return True
            op = op.parent.operation
        return False

    def _number(self, op: Any, name: str) -> int:
        return int(self.ir.IntegerAttr(op.attributes[name]).value)

    # Tiles -----------------------------------------------------------------------------------

    def _follow(self, tile: Any) -> None:
        """Check every use of a tile: it is inside of the loop, and only copies write it."""
        left = [tile]
        self.plan.derived.add(tile)
        while left:
            for use in left.pop().uses:
                op = use.owner.operation
                if is_pure(op):
                    inside = self._is_inside(op)
                    if not inside and op not in self.plan.outside:
                        self.plan.outside.append(op)
                    for result in op.results:
                        if result not in self.plan.derived:
                            self.plan.derived.add(result)
                            left.append(result)
                            if not inside:
                                self.plan.derived_outside.add(result)
                    continue
                if not self._is_inside(op):
                    raise UnsupportedLoop(
                        "a tile that it copies into is used outside of the loop too", op
                    )
                reads = (op.name == "cute.load" and use.operand_number == 0) or (
                    op.name == "cute.copy" and use.operand_number == 0
                )
                reads = reads or (op.name == "cute.wgmma" and use.operand_number in (1, 2))
                if not reads and not self._is_copy(op):
                    raise UnsupportedLoop("it changes a tile that it copies into", op)

    def _slice(self, roots: list[Any]) -> None:
        """Collect the ops of the body that the copies need, in order."""
        needed: set[Any] = set()
        left = list(roots)
        arguments = list(self.block.arguments)
        while left:
            op = left.pop()
            if op in needed:
                continue
            needed.add(op)
            values = {value for inner in walk(op) for value in inner.operands}
            for value in values:
                if value in arguments[1:]:
                    raise UnsupportedLoop(
                        "what it copies depends on what an iteration has computed", op
                    )
                made = defining(value)
                if made is None or made not in self.place:
                    continue
                if made.name == "cute.load":
                    left += self._loaded(made)
                elif made.name == "cute.alloc_rmem":
                    pass
                elif not (is_pure(made) or made.name.startswith("nvvm.read.ptx.sreg")):
                    raise UnsupportedLoop(
                        "what it copies depends on what an iteration has computed", made
                    )
                left.append(made)
        for op in self.private:
            for result in op.results:
                for use in result.uses:
                    if self._top(use.owner.operation) not in needed:
                        raise UnsupportedLoop(
                            "registers that its copies depend on are used elsewhere", op
                        )
        loads = set(self.plan.stores.values())
        self.plan.copying = [op for op in self.ops if op in needed and op not in loads]
        for op in loads:  # their operands are needed, they are not
            self.place.pop(op)

    def _loaded(self, op: Any) -> list[Any]:
        """Collect what a load needs that the copies depend on: of registers that the loop
        writes too, every op of the body that touches them.
        """
        space = self._space(op.operands[0])
        if is_strong(op):
            raise UnsupportedLoop("what it copies depends on what others write", op)
        if space not in ("gmem", "rmem"):
            raise UnsupportedLoop("what it copies depends on shared memory", op)
        if space == "gmem":
            return []
        root = op.operands[0]
        while defining(root) is not None and defining(root).name in ("cute.view", "cute.recast"):
            root = defining(root).operands[0]
        made = defining(root)
        if made is None or made.name != "cute.alloc_rmem":
            raise UnsupportedLoop("what it copies depends on registers of unknown origin", op)
        users = [user for user in self._users(root) if self._is_inside(user)]
        if all(user.name == "cute.load" for user in users) and not self._is_inside(made):
            return []
        tops = {self._top(user) for user in users}
        for top in tops:
            for inner in walk(top):
                plain = inner.name in ("cute.load", "scf.if", "scf.for", "scf.yield")
                plain = plain or (
                    inner.name == "cute.store" and self._space(inner.operands[1]) == "rmem"
                )
                if not (plain or is_pure(inner) or self._is_copy(inner)):
                    raise UnsupportedLoop(
                        "registers that its copies depend on are used elsewhere", inner
                    )
        self.private |= tops
        return list(tops)

    def _users(self, root: Any) -> list[Any]:
        """Collect the ops that access what an allocation holds."""
        left, out = [root], []
        while left:
            for use in left.pop().uses:
                op = use.owner.operation
                if is_pure(op):
                    left += list(op.results)
                else:
                    out.append(op)
        return out

    def _top(self, op: Any) -> Any:
        """Find the op of the body that an op of the loop is in."""
        while op not in self.place:
            op = op.parent.operation
        return op

    # The rest --------------------------------------------------------------------------------

    def _barrier(self, roots: list[Any]) -> None:
        """Find the first barrier of all threads after the copies; tiles are read only after it."""
        last = max(self.place[op] for op in roots)
        for op in self.ops[last + 1 :]:
            if op.name == "cute.barrier" and "id" not in op.attributes:
                self.plan.barrier = op
                break
        else:
            raise UnsupportedLoop(
                "there is no barrier of all threads between its copies and their use",
                None,
                "write cute.arch.sync_threads() after the copies",
            )
        at = self.ops.index(self.plan.barrier)
        for op in self.ops[:at]:
            if op in roots:
                continue
            for inner in walk(op):
                touches = any(value in self.plan.derived for value in inner.operands)
                if touches and not is_pure(inner):
                    raise UnsupportedLoop(
                        "it reads a tile before the barrier that the copies end at", inner
                    )

    def _check_rest(self) -> None:
        loads = set(self.plan.stores.values())
        self.plan.rest = [op for op in self.plan.rest if op not in loads]
        pending: Any = None
        other = False  # shared memory besides the tiles
        for op in self.plan.rest:
            for inner in walk(op):
                check_effect(self.dialect, inner)
                if inner.name == "cute.wgmma":
                    pending = inner
                if inner.name == "nvvm.wgmma.wait.group.sync.aligned" and inner == op:
                    pending = pending if self._number(op, "group") else None
                if not is_pure(inner):
                    smem = [v for v in inner.operands if self._is_shared(v)]
                    other |= any(value not in self.plan.derived for value in smem)
        if pending is not None:
            raise UnsupportedLoop(
                "a wgmma that reads a tile may go on into the next iteration",
                pending,
                "end the iteration with warpgroup.wait_group(0)",
            )
        if not other:  # further barriers order only uses of the tiles: the one that is left does
            self.plan.rest = [
                op
                for op in self.plan.rest
                if op == self.plan.barrier
                or not (op.name == "cute.barrier" and "id" not in op.attributes)
            ]

    def _is_shared(self, value: Any) -> bool:
        return self._space(value) == "smem" or str(value.type) == "!llvm.ptr<3>"


def check_effect(dialect: CuteDialect, op: Any) -> None:
    """Raise UnsupportedLoop if an op beside the copies has an effect that they could observe."""
    if is_pure(op) or op.name.startswith("nvvm.read.ptx.sreg"):
        return
    if op.name not in _HARMLESS:
        raise UnsupportedLoop(f"it does more than copy and compute: {op.name}", op)
    if op.name == "nvvm.barrier" or (op.name == "cute.barrier" and "id" in op.attributes):
        return
    if op.name == "cute.load" and is_strong(op):
        raise UnsupportedLoop("it waits for what others write, which its copies may depend on", op)
    memory = {"cute.store": 1, "cute.copy": 1}.get(op.name)
    if memory is None:
        return
    record = dialect.record(op.operands[memory].type)
    if record is None or record.space not in ("rmem", "smem"):
        raise UnsupportedLoop(
            "it writes global memory, which a copy that runs ahead might have to see",
            op,
            "write the results after the loop, or write the pipeline by hand",
        )


def is_pure(op: Any) -> bool:
    """Return True if an op only computes."""
    return op.name in _PURE or op.name.startswith(_PURE_DIALECTS)


def is_strong(load: Any) -> bool:
    """Return True if a load may wait for what other threads write."""
    return any(name in load.attributes for name in ("volatile", "order", "scope"))


def walk(op: Any) -> Iterator[Any]:
    """Yield an op and all ops inside of it."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from walk(inner.operation)
