"""The step `lower-launch`: host code's `gpu.launch_func` ops become calls of a C function.

In: a module after `lower-cute`. Out: the same without its gpu.modules, whose launches are calls of
`basedsl_launch` (declared in `lowering.host.launch_abi`), ready for `objectstage.native_steps`.
A launch that fails makes the host function return at once: for the native back end it is an
assertion at the launch's line.
"""

from __future__ import annotations

from typing import Any

from basedsl import CompilerBug, PipelineContext, span_of_location
from basedsl_cute.dialect.attributes import (
    BYVAL,
    CARVEOUT_ATTRIBUTE,
    COOPERATIVE_ATTRIBUTE,
    DYNAMIC_SMEM_ATTRIBUTE,
    DYNAMIC_SMEM_SYMBOL,
    EVENTS_ATTRIBUTE,
    PDL_ATTRIBUTE,
    PREFERRED_CLUSTER_ATTRIBUTE,
    SMEM_IS_TOTAL_ATTRIBUTE,
    STATIC_SMEM_ATTRIBUTE,
)
from basedsl_cute.lowering.host.launch_abi import (
    CONFIG_INDEX,
    CONFIG_WORDS,
    COOPERATIVE,
    LAUNCH_SYMBOL,
    LAUNCHER_SYMBOL,
    PDL,
    PREFERRED_CLUSTER,
    KernelEntry,
    LaunchTable,
)
from basedsl_cute.lowering.kernel.storage import is_float
from basedsl_cute.lowering.kernel_build import kernel_build

FAILED = "launch failed"
_PRINTF_TYPE = "!llvm.func<i32 (ptr, ...)>"


def launch_table(op: Any, bindings: Any) -> LaunchTable:
    """List the kernels of a module after `lower-cute`, in order."""
    entries = []
    for module in op.regions[0].blocks[0].operations:
        if module.operation.name != "gpu.module":
            continue
        inner = list(module.operation.regions[0].blocks[0].operations)
        has_dynamic = any(_is_dynamic_smem(one.operation) for one in inner)
        for one in inner:
            if one.operation.name in ("gpu.func", "llvm.func") and _is_kernel(one.operation):
                entries.append(_entry(one.operation, bindings, has_dynamic))
    return LaunchTable(tuple(entries))


def _is_dynamic_smem(op: Any) -> bool:
    if op.name != "llvm.mlir.global":
        return False
    return bool(op.attributes["sym_name"].value == DYNAMIC_SMEM_SYMBOL)


def _is_kernel(op: Any) -> bool:
    # gpu.func has the property `kernel`; after conversion to llvm.func it is `gpu.kernel`.
    return "kernel" in op.attributes or "gpu.kernel" in op.attributes


def _entry(op: Any, bindings: Any, has_dynamic: bool) -> KernelEntry:
    ir = bindings.ir
    attributes = op.attributes

    def number(name: str) -> int:
        return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else 0

    def numbers(name: str) -> tuple[int, ...] | None:
        return tuple(ir.DenseI32ArrayAttr(attributes[name])) if name in attributes else None

    place = span_of_location(op.location)
    return KernelEntry(
        file="" if place is None else place.filename,
        line=0 if place is None else place.line,
        name=str(attributes["sym_name"].value),
        arguments=_argument_types(op, ir),
        smem_bytes=number(DYNAMIC_SMEM_ATTRIBUTE),
        static_smem=number(STATIC_SMEM_ATTRIBUTE),
        uses_dynamic_smem=has_dynamic,
        block=numbers("nvvm.reqntid"),
        cluster=numbers("nvvm.cluster_dim"),
        preferred_cluster=numbers(PREFERRED_CLUSTER_ATTRIBUTE),
        smem_carveout=number(CARVEOUT_ATTRIBUTE) - 1,
    )


def _argument_types(op: Any, ir: Any) -> tuple[str, ...]:
    types = [str(a.type) for a in op.regions[0].blocks[0].arguments]
    marks = ir.ArrayAttr(op.attributes["arg_attrs"]) if "arg_attrs" in op.attributes else ()
    for i, mark in enumerate(marks):
        if "llvm.byval" in mark:
            types[i] = BYVAL + str(ir.TypeAttr(ir.DictAttr(mark)["llvm.byval"]).value)
    return tuple(types)


def lower_launch(op: Any, context: PipelineContext) -> None:
    """The step itself. Takes the table of kernels of the build's record, or makes it there."""
    build = kernel_build(context)
    if build.launches is None:
        build.launches = launch_table(op, context.bindings)
    _HostModule(op, context.bindings, build.launches).lower()


class _HostModule:
    """One run of the step."""

    def __init__(self, op: Any, bindings: Any, table: LaunchTable) -> None:
        self.op = op
        self.bindings = bindings
        self.ir = ir = bindings.ir
        self.indices = {kernel.name: i for i, kernel in enumerate(table.kernels)}
        self.table = table
        self.i8 = ir.IntegerType.get_signless(8)
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)
        self.ptr = bindings.llvm.PointerType.get()
        self._ip: Any = None
        self._loc: Any = ir.Location.unknown()

    def lower(self) -> None:
        body = self.op.regions[0].blocks[0]
        launches: list[Any] = []
        prints: list[Any] = []
        modules: list[Any] = []

        def visit(op: Any) -> Any:
            name = op.name
            if name == "gpu.module":
                modules.append(op)
                return self.ir.WalkResult.SKIP
            if name == "gpu.launch_func":
                launches.append(op)
            elif name == "gpu.printf":
                prints.append(op)
            return self.ir.WalkResult.ADVANCE

        self.op.walk(visit, self.ir.WalkOrder.PRE_ORDER)
        self._ip = self.ir.InsertionPoint.at_block_begin(body)
        if launches:
            self._declare()
        if prints:
            self._declare_printf()
        for number, one in enumerate(prints):
            self._printf(one, number)
        for one in launches:
            self._launch(one)
        for module in modules:
            module.erase()
        if "gpu.container_module" in self.op.attributes:
            del self.op.attributes["gpu.container_module"]

    # Building --------------------------------------------------------------------------------

    def emit(self, name: str, results: Any = (), operands: Any = (), **attributes: Any) -> Any:
        op = self.ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=attributes,
            regions=1 if name in ("llvm.mlir.global", "llvm.func") else 0,
            loc=self._loc,
            ip=self._ip,
        )
        return op.result if len(results) == 1 else op

    def constant(self, value: int) -> Any:
        return self.emit(
            "arith.constant", [self.i64], value=self.ir.IntegerAttr.get(self.i64, value)
        )

    def symbol(self, name: str) -> Any:
        reference = self.ir.FlatSymbolRefAttr.get(name)
        return self.emit("llvm.mlir.addressof", [self.ptr], global_name=reference)

    def _declare(self) -> None:
        ir = self.ir
        kind = ir.Type.parse("!llvm.func<i32 (ptr, ptr, ptr)>")
        self._external_function(LAUNCH_SYMBOL, kind)
        self.emit(
            "llvm.mlir.global",
            sym_name=ir.StringAttr.get(LAUNCHER_SYMBOL),
            global_type=ir.TypeAttr.get(self.i8),
            linkage=ir.Attribute.parse("#llvm.linkage<external>"),
            addr_space=ir.IntegerAttr.get(self.i32, 0),
        )

    def _declare_printf(self) -> None:
        self._external_function("printf", self.ir.Type.parse(_PRINTF_TYPE))

    def _external_function(self, name: str, kind: Any) -> None:
        ir = self.ir
        self.emit(
            "llvm.func",
            sym_name=ir.StringAttr.get(name),
            function_type=ir.TypeAttr.get(kind),
            linkage=ir.Attribute.parse("#llvm.linkage<external>"),
        )

    def _slot(self, function: Any, kind: Any, count: int = 1) -> Any:
        """Allocate a stack slot at the function's entry, so that a launch in a loop takes no more
        stack.
        """
        outer = self._ip
        entry = function.regions[0].blocks[0]
        self._ip = self.ir.InsertionPoint.at_block_begin(entry)
        size = self.constant(count)
        slot = self.emit("llvm.alloca", [self.ptr], [size], elem_type=self.ir.TypeAttr.get(kind))
        self._ip = outer
        return slot

    def _store(self, value: Any, base: Any, word: int) -> None:
        """Write 8 bytes at `base[word]`."""
        ir = self.ir
        address = self.emit(
            "llvm.getelementptr",
            [self.ptr],
            [base],
            elem_type=ir.TypeAttr.get(self.i64),
            rawConstantIndices=ir.DenseI32ArrayAttr.get([word]),
        )
        self.emit("llvm.store", [], [value, address])

    # Launches --------------------------------------------------------------------------------

    def _launch(self, op: Any) -> None:
        ir = self.ir
        self._ip, self._loc = ir.InsertionPoint(op), op.location
        function = _function_of(op)
        name = ir.SymbolRefAttr(op.attributes["kernel"]).value[-1]
        index = self.indices.get(name)
        if index is None:
            raise CompilerBug(f"no kernel {name!r} to launch", span=span_of_location(op.location))
        kernel = self.table.kernels[index]
        config = self._slot(function, self.i64, CONFIG_WORDS)
        operands = _Segments(ir, op)
        for field, segments in _FIELDS.items():
            values = [value for segment in segments for value in operands[segment]]
            words = [self._word(value) for value in values]
            if field == "smem":
                words = [self._smem(words, kernel, SMEM_IS_TOTAL_ATTRIBUTE in op.attributes)]
            elif not words:
                words = [self.constant(0)] * len(segments)
            for i, word in enumerate(words):
                self._store(word, config, CONFIG_INDEX[field] + i)
        flags = COOPERATIVE * (COOPERATIVE_ATTRIBUTE in op.attributes)
        flags |= PDL * (PDL_ATTRIBUTE in op.attributes)
        for i, extent in enumerate(kernel.preferred_cluster or ()):
            flags |= extent << PREFERRED_CLUSTER + 8 * i
        values = operands["args"]
        for field, number in (("kernel", index), ("flags", flags), ("args", len(values))):
            self._store(self.constant(number), config, CONFIG_INDEX[field])
        self._events(op, operands["async"], config)
        args = self._arguments(function, values, kernel)
        status = self.emit(
            "llvm.call",
            [self.i32],
            [self.symbol(LAUNCHER_SYMBOL), config, args],
            callee=ir.FlatSymbolRefAttr.get(LAUNCH_SYMBOL),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([3, 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )
        good = self.ir.IntegerAttr.get(self.i32, 0)
        zero = self.emit("arith.constant", [self.i32], value=good)
        i1 = ir.IntegerType.get_signless(1)
        equal = ir.IntegerAttr.get(self.i64, 0)
        started = self.emit("arith.cmpi", [i1], [status, zero], predicate=equal)
        self.emit("cf.assert", [], [started], msg=ir.StringAttr.get(FAILED))
        tokens = [token.owner for token in operands["async"]]
        op.erase()
        for token in tokens:
            token.erase()

    def _events(self, op: Any, tokens: list[Any], config: Any) -> None:
        """Write the launch's events, which are casts of their handles to tokens."""
        flags = dict.fromkeys(("completion_event", "programmatic_event"), 0)
        given = dict.fromkeys(flags)
        if tokens:
            kept = self.ir.DictAttr(op.attributes[EVENTS_ATTRIBUTE])
            for one, token in zip(kept, tokens, strict=True):
                given[one.name] = token.owner.operands[0]
                flags[one.name] = self.ir.IntegerAttr(one.attr).value
        for name, handle in given.items():
            at = CONFIG_INDEX[name]
            self._store(self.constant(0) if handle is None else handle, config, at)
            self._store(self.constant(flags[name]), config, at + 1)

    def _smem(self, words: list[Any], kernel: KernelEntry, is_total: bool) -> Any:
        asked = words[0] if words else self.constant(0)
        if words and is_total:
            own = self.constant(kernel.smem_bytes + kernel.static_smem)
            more = self.emit("arith.subi", [self.i64], [asked, own])
            asked = self.emit("arith.maxsi", [self.i64], [more, self.constant(0)])
        if not kernel.smem_bytes:
            return asked
        return self.emit("arith.addi", [self.i64], [asked, self.constant(kernel.smem_bytes)])

    def _word(self, value: Any) -> Any:
        """Convert a number or an address to an i64, sign-extended; the launcher checks it."""
        kind = str(value.type)
        if kind == "i64":
            return value
        name = "llvm.ptrtoint" if kind.startswith("!llvm.ptr") else "arith.extsi"
        return self.emit("arith.index_cast" if kind == "index" else name, [self.i64], [value])

    def _arguments(self, function: Any, values: list[Any], kernel: KernelEntry) -> Any:
        """Build an array with the address of each argument."""
        array = self._slot(function, self.ptr, max(1, len(values)))
        for i, value in enumerate(values):
            if kernel.arguments[i].startswith(BYVAL):
                address = value
            else:
                value = self._in_memory(value)
                address = self._slot(function, value.type)
                self.emit("llvm.store", [], [value, address])
            self._store(address, array, i)
        return array

    def _in_memory(self, value: Any) -> Any:
        """Convert `value` to the form that it has in a kernel's parameters."""
        kind = str(value.type)
        if kind == "index":
            return self.emit("arith.index_cast", [self.i64], [value])
        if kind == "i1":
            return self.emit("arith.extui", [self.i8], [value])
        if kind == "tf32":
            return self.emit("arith.extf", [self.ir.F32Type.get()], [value])
        width = getattr(value.type, "width", 64)
        if width <= 8 and is_float(value.type):
            code = self.ir.IntegerType.get_signless(width)
            value = self.emit("arith.bitcast", [code], [value])
        return self.emit("arith.extui", [self.i8], [value]) if width < 8 else value

    # Printing --------------------------------------------------------------------------------

    def _printf(self, op: Any, number: int) -> None:
        """Lower `gpu.printf` to C's printf, with floats as f64."""
        ir = self.ir
        text = ir.StringAttr(op.attributes["format"]).value + "\0"
        name = f"basedsl_format_{number}"
        self._loc = op.location
        self._ip = ir.InsertionPoint.at_block_begin(self.op.regions[0].blocks[0])
        self.emit(
            "llvm.mlir.global",
            sym_name=ir.StringAttr.get(name),
            global_type=ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{len(text.encode())} x i8>")),
            linkage=ir.Attribute.parse("#llvm.linkage<internal>"),
            constant=ir.UnitAttr.get(),
            value=ir.StringAttr.get(text),
            addr_space=ir.IntegerAttr.get(self.i32, 0),
        )
        self._ip = ir.InsertionPoint(op)
        operands = [self.symbol(name)]
        f64 = ir.F64Type.get()
        for value in op.operands:
            is_narrow = is_float(value.type) and value.type != f64
            operands.append(self.emit("arith.extf", [f64], [value]) if is_narrow else value)
        self.emit(
            "llvm.call",
            [self.i32],
            operands,
            var_callee_type=ir.TypeAttr.get(ir.Type.parse(_PRINTF_TYPE)),
            callee=ir.FlatSymbolRefAttr.get("printf"),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )
        op.erase()


class _Segments:
    """The operand groups of a gpu.launch_func by name."""

    _NAMES = (
        "async", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
        "cluster_x", "cluster_y", "cluster_z", "smem", "args", "stream",
    )  # fmt: skip

    def __init__(self, ir: Any, op: Any) -> None:
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = list(op.operands)
        self._groups: dict[str, list[Any]] = {}
        start = 0
        for name, size in zip(self._NAMES, sizes, strict=True):
            self._groups[name] = operands[start : start + size]
            start += size

    def __getitem__(self, name: str) -> list[Any]:
        return self._groups[name]


_FIELDS = {
    "grid": ("grid_x", "grid_y", "grid_z"),
    "block": ("block_x", "block_y", "block_z"),
    "cluster": ("cluster_x", "cluster_y", "cluster_z"),
    "smem": ("smem",),
    "stream": ("stream",),
}


def _function_of(op: Any) -> Any:
    parent = op.parent
    while parent is not None and parent.operation.name != "func.func":
        parent = parent.operation.parent
    if parent is None:
        raise CompilerBug("a launch outside of any function", span=span_of_location(op.location))
    return parent.operation
