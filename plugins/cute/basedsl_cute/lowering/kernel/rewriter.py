"""The step `lower-cute`: one walk over a module that replaces `cute` ops by rules from a table.

What comes out is structured IR (scf, arith, math, vector, llvm, nvvm, gpu) with tensors turned
into `!llvm.ptr`; both the simulator and the PTX path take it. The walk visits ops in order, so an
operand is lowered before its use. Values other ops carry (block arguments, results of `scf.if`,
function signatures) change type in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from basedsl import (
    Bindings,
    DSLError,
    Rule,
    RuleResult,
    RuleTable,
    Span,
    apply_result,
    span_of_location,
)
from basedsl_cute.dialect import MemRef
from basedsl_cute.dialect.attributes import (
    DYNAMIC_SMEM_ALIGNMENT,
    DYNAMIC_SMEM_ATTRIBUTE,
    DYNAMIC_SMEM_NAMES_ATTRIBUTE,
    DYNAMIC_SMEM_SYMBOL,
    MERGED_BRANCHES_ATTRIBUTE,
    SMEM_ALIGNMENT,
    STATIC_SMEM_ATTRIBUTE,
)
from basedsl_cute.dialect.ops import AllocSmem
from basedsl_cute.hardware.targets import STATIC_SMEM, target_of
from basedsl_cute.lowering.kernel.builder import Builder, InsertionScope

# A rule takes the operation as an instance of the class that declares it.
RuleFunction = Callable[["Rewriter", Any], RuleResult]


@dataclass(frozen=True, slots=True)
class LoweringRule(Rule[RuleFunction]):
    """The lowering of one operation. With `reads_types` the rule may read the types that its
    operands had before they became addresses (`Rewriter.records`).
    """

    reads_types: bool = False


LoweringRules = RuleTable[RuleFunction, LoweringRule]


@dataclass
class _Function:
    """A function being lowered and the shared memory it takes.

    `offsets` are those of its `cute.alloc_smem` in order; `dynamic_bytes` is the sum of all if they
    live in dynamic shared memory, else 0.
    """

    op: Any
    name: str
    offsets: list[int]
    dynamic_bytes: int = 0
    placed: int = 0
    last: Any = None  # where the last allocation is

    def next_offset(self) -> int:
        self.placed += 1
        return self.offsets[self.placed - 1]

    def next_symbol(self, stem: str) -> str:
        self.placed += 1
        return f"{self.name}_{stem}_{self.placed - 1}"


class Rewriter(Builder):
    """One run of `lower-cute`: the table, the dialect and where to insert."""

    def __init__(self, bindings: Bindings, rules: LoweringRules, target: str) -> None:
        super().__init__(bindings)
        self.rules = rules
        self.target = target
        self._memref_class: Any = self.dialect.memref_class
        self._pointers: dict[int, Any] = {}
        self._offsets: dict[Any, dict[str, Any]] = {}  # attributes of getelementptr by element
        self.function: _Function | None = None
        self._on_host = False  # where every address is in the one address space
        self.records: tuple[MemRef | None, ...] = ()
        self._planned: Iterator[_Function] = iter(())
        self._dynamic_smem: Any = None
        self._module: Any = None  # the gpu.module (or builtin.module) that symbols go into

    # Building --------------------------------------------------------------------------------

    def pointer(self, address_space: int) -> Any:
        """Return the type `!llvm.ptr<address_space>`, made once."""
        found = self._pointers.get(address_space)
        if found is None:
            found = self._pointers[address_space] = self.dialect.pointer_type(address_space)
        return found

    def element_pointer(self, base: Any, index: Any, element: Any) -> Any:
        """Compute the address `index` elements of the LLVM type `element` behind `base`.

        What is constant in the index is added last: accesses that differ in it alone then share
        their address but for a number in the instruction. (An index does not overflow its type.)
        """
        variable, constant = self._parts_of(index)
        if abs(constant) < 2**31:
            if variable is not None:
                base = self._offset(base, variable, element)
            return self._constant_offset(base, constant, element) if constant else base
        return self._offset(base, index, element)

    def _offset(self, base: Any, index: Any, element: Any) -> Any:
        attributes = self._offsets.get(element)
        if attributes is None:
            attributes = self._offsets[element] = {
                "elem_type": self.ir.TypeAttr.get(element),
                "rawConstantIndices": self.ir.DenseI32ArrayAttr.get([-(2**31)]),
            }
        return self.emit("llvm.getelementptr", [base.type], [base, index], attributes)

    def _parts_of(self, index: Any) -> tuple[Any, int]:
        """Split an index into a value, None if it is all constant, and a constant."""
        owner = index.owner
        name = getattr(owner, "name", None)  # blocks own their arguments
        if name == "arith.constant":
            return None, self.ir.IntegerAttr(owner.attributes["value"]).value
        if name == "arith.addi":
            (left, some), (right, more) = map(self._parts_of, owner.operands)
            if left is None or right is None:
                return right if left is None else left, some + more
            if some or more:
                return self.emit("arith.addi", [index.type], [left, right]), some + more
        return index, 0

    def _constant_offset(self, base: Any, elements: int, element: Any) -> Any:
        attributes = {
            "elem_type": self.ir.TypeAttr.get(element),
            "rawConstantIndices": self.ir.DenseI32ArrayAttr.get([elements]),
        }
        return self.emit("llvm.getelementptr", [base.type], [base], attributes)

    def byte_pointer(self, base: Any, offset: int) -> Any:
        """Compute the address `offset` bytes behind `base`."""
        if not offset:
            return base
        ir = self.ir
        attributes = {
            "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([offset]),
        }
        return self.emit("llvm.getelementptr", [base.type], [base], attributes)

    def cast(self, pointer: Any, type: Any) -> Any:
        """Cast `pointer` to another address space."""
        if pointer.type == type:
            return pointer
        return self.emit("llvm.addrspacecast", [type], [pointer])

    def at_entry(self) -> InsertionScope:
        """Make `emit` insert at the beginning of the current function while entered."""
        assert self.function is not None
        block = self.function.op.regions[0].blocks[0]
        return InsertionScope(self, self.ir.InsertionPoint.at_block_begin(block))

    def global_array(self, symbol: str, bytes: int, alignment: int, linkage: str) -> Any:
        """Declare shared memory under a name: `llvm.mlir.global` in address space 3."""
        ir = self.ir
        array = ir.Type.parse(f"!llvm.array<{bytes} x i8>")
        return self._create(
            "llvm.mlir.global",
            attributes={
                "global_type": ir.TypeAttr.get(array),
                "sym_name": ir.StringAttr.get(symbol),
                "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
                "addr_space": self.integer(3, 32),
                "alignment": self.integer(alignment),
            },
            regions=1,
            loc=self._loc,
            ip=ir.InsertionPoint.at_block_begin(self._module.regions[0].blocks[0]),
        )

    def address_of(self, symbol: str) -> Any:
        """Get the address of shared memory that `global_array` declared."""
        name = self.ir.FlatSymbolRefAttr.get(symbol)
        return self.emit("llvm.mlir.addressof", [self.pointer(3)], [], {"global_name": name})

    def dynamic_smem_base(self) -> Any:
        """Get the address of dynamic shared memory, which each gpu.module declares once."""
        if self._dynamic_smem is None:
            self._dynamic_smem = self.global_array(
                DYNAMIC_SMEM_SYMBOL, 0, DYNAMIC_SMEM_ALIGNMENT, "external"
            )
        return self.address_of(DYNAMIC_SMEM_SYMBOL)

    def name_dynamic_smem(
        self, offset: int, name: str | None, fields: str | None, span: Span | None
    ) -> None:
        """Record what lies at `offset` of dynamic shared memory, for the simulator's messages: a
        struct with `fields`, or an allocation at `span`.
        """
        assert self.function is not None
        if fields:
            parts = [part.rpartition(":") for part in fields.split(";")]
            found = [f"{name}.{field}:{offset + int(at)}" for field, _, at in parts]
        else:
            where = "" if span is None else f" allocated at {Path(span.filename).name}:{span.line}"
            found = [f"{name or 'shared memory' + where}:{offset}"]
        attributes = self.function.op.attributes
        if DYNAMIC_SMEM_NAMES_ATTRIBUTE in attributes:
            found.insert(0, str(attributes[DYNAMIC_SMEM_NAMES_ATTRIBUTE].value))
        attributes[DYNAMIC_SMEM_NAMES_ATTRIBUTE] = self.ir.StringAttr.get(";".join(found))

    # The walk --------------------------------------------------------------------------------

    def run(self, module: Any) -> None:
        """Lower every cute op below `module`, a `builtin.module` operation."""
        ops: list[Any] = []
        keep = self.ir.WalkResult.ADVANCE

        def collect(op: Any) -> Any:
            ops.append(op)
            return keep

        module.walk(collect, self.ir.WalkOrder.PRE_ORDER)
        names = [op.name for op in ops]
        records = self._plan(ops, names)
        for op, name in zip(ops, names, strict=True):
            if name.startswith("cute."):
                rule = self.rules.for_op(op, self.target)
                self.records = next(records) if rule.reads_types else ()
                self._lower(rule, op)
            elif name == "gpu.launch_func":
                self._cast_arguments(op, next(records))
            elif name in _CARRIERS:
                self._retype(name, op)
            elif name == "arith.mulf" and next(iter(op.result.uses), None) is None:
                op.erase()  # every sum of it was contracted

    def _plan(self, ops: list[Any], names: list[str]) -> Iterator[tuple[MemRef | None, ...]]:
        """Read what the walk changes: types of operands, and sums of shared memory."""
        records: list[tuple[MemRef | None, ...]] = []
        for op, name in zip(ops, names, strict=True):
            reads = name == "gpu.launch_func"
            if name.startswith("cute."):
                reads = self.rules.for_op(op, self.target).reads_types
            if reads:
                records.append(tuple(self.dialect.record(v.type) for v in op.operands))
        self._plan_shared_memory(ops, names)
        return iter(records)

    def _lower(self, rule: LoweringRule, op: Any) -> None:
        self.at(op)
        apply_result(rule, op, rule.apply(self, self.dialect.view(op)))

    def _retype(self, name: str, op: Any) -> None:
        if name in _FUNCTIONS:
            self._on_host = name == "func.func"
        for result in op.results:
            self._convert(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self._convert(argument)
        if name in ("gpu.module", "builtin.module"):
            self._module = op
            self._dynamic_smem = None
        elif name in _FUNCTIONS:
            self._retype_function(op)

    def _retype_function(self, op: Any) -> None:
        ir = self.ir
        self.function = next(self._planned)
        function_type = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs = [self.lowered_type(t) for t in function_type.inputs]
        results = [self.lowered_type(t) for t in function_type.results]
        changed = ir.FunctionType.get(inputs, results)
        if "known_block_size" in op.attributes:
            # MLIR would make an upper bound of it (.maxntid), but every launch has exactly this.
            op.attributes["nvvm.reqntid"] = op.attributes["known_block_size"]
            del op.attributes["known_block_size"]
        op.attributes["function_type"] = ir.TypeAttr.get(changed)

    def lowered_type(self, type: Any) -> Any:
        """Convert a type: tensors become addresses, other types stay."""
        if not isinstance(type, self._memref_class):
            return type
        record = self.dialect.record(type)
        assert record is not None
        return self.pointer(0 if self._on_host else record.address_space)

    def _cast_arguments(self, op: Any, records: tuple[MemRef | None, ...]) -> None:
        """Cast the addresses that a launch passes: ordinary ones on the host, global memory in a
        kernel.
        """
        self.at(op)
        for i, record in enumerate(records):
            if record is not None:
                op.operands[i] = self.cast(op.operands[i], self.pointer(record.address_space))

    def _convert(self, value: Any) -> None:
        if isinstance(value.type, self._memref_class):
            value.set_type(self.lowered_type(value.type))

    # Shared memory ---------------------------------------------------------------------------

    def _plan_shared_memory(self, ops: list[Any], names: list[str]) -> None:
        """Add up the shared memory of each kernel; beyond the static limit all of it becomes
        dynamic.
        """
        functions: list[_Function] = []
        ends: list[int] = []
        for op, name in zip(ops, names, strict=True):
            if name in _FUNCTIONS:
                functions.append(_Function(op, str(op.attributes["sym_name"].value), []))
                ends.append(0)
            elif name == "cute.alloc_smem" and functions:
                alloc = AllocSmem.of(self.dialect, op)
                record = self.dialect.record_of(alloc.memref)
                align = max(record.alignment, SMEM_ALIGNMENT)
                start = -(-ends[-1] // align) * align
                functions[-1].offsets.append(start)
                functions[-1].last = op.location
                ends[-1] = start + alloc.bytes
        for i, function in enumerate(functions):
            if MERGED_BRANCHES_ATTRIBUTE in function.op.attributes and ends[i] > STATIC_SMEM:
                function.offsets = []
                # Above the limit of static memory, where each allocation is by itself.
                ends[i] = max(self._merged_end(function.op, function, 0), STATIC_SMEM + 1)
        for function, end in zip(functions, ends, strict=True):
            most = target_of(self.target).smem_per_block
            if end > most:
                raise DSLError(
                    f"the kernel '{function.name}' allocates {end} bytes of shared memory",
                    span_of_location(function.last),
                    notes=((f"a block has at most {most} bytes on {self.target}", None),),
                    hint="use smaller tiles, fewer stages of a pipeline, or a narrower type",
                )
            if end > STATIC_SMEM:
                rounded = -(-end // DYNAMIC_SMEM_ALIGNMENT) * DYNAMIC_SMEM_ALIGNMENT
                function.dynamic_bytes = rounded
                function.op.attributes[DYNAMIC_SMEM_ATTRIBUTE] = self.integer(rounded)
            elif end:
                function.op.attributes[STATIC_SMEM_ATTRIBUTE] = self.integer(end)
        self._planned = iter(functions)

    def _merged_end(self, op: Any, function: _Function, start: int) -> int:
        """Return where the allocations inside `op` end if those of the branches of a condition
        begin at the same place; their offsets go to the function, in order.
        """
        end = start
        for region in op.regions:
            at = start if op.name == "scf.if" else end
            for block in region.blocks:
                for inner in block.operations:
                    if inner.operation.name == "cute.alloc_smem":
                        alloc = AllocSmem.of(self.dialect, inner.operation)
                        align = max(self.dialect.record_of(alloc.memref).alignment, SMEM_ALIGNMENT)
                        at = -(-at // align) * align
                        function.offsets.append(at)
                        at += alloc.bytes
                    else:
                        at = self._merged_end(inner.operation, function, at)
            end = max(end, at)
        return end


_FUNCTIONS = ("gpu.func", "func.func")

# Ops that can carry a tensor through: in their results, block arguments or signature.
_CARRIERS = frozenset(
    (
        "builtin.module",
        "gpu.module",
        "gpu.func",
        "func.func",
        "func.call",
        "scf.for",
        "scf.while",
        "scf.if",
        "scf.index_switch",
        "scf.execute_region",
        "arith.select",
        "cf.br",
        "cf.cond_br",
    )
)
