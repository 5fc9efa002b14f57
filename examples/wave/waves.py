"""waves: a DSL of kernels for AMD GPUs, in one file: wavefronts of 64 lanes.

A function is a kernel. It becomes operations of MLIR's `gpu` and `rocdl` dialects, LLVM IR for
AMDGPU and an object file of gfx942; calls run on the simulator of `basedsl_cute.sim`, as a machine
of 64 lanes.

    @waves.kernel
    def total(x, sums):
        i = waves.block() * waves.block_size() + waves.thread()
        sums[i // 64] = waves.wave_sum(x[i])

    total.launch(grid=4, block=256)(x, sums)
"""

from __future__ import annotations

import contextvars

from basedsl import (
    DSL,
    ArrayArgument,
    ArrayRecord,
    DSLCallError,
    DSLFunction,
    Float32,
    Int32,
    Int64,
    Language,
    NativeTarget,
    Pipeline,
    Step,
    as_numeric,
    compile_llvmir,
    current_trace,
    mlir_type,
    users_frames,
)
from basedsl_cute.sim import Machine, Memory, translate
from basedsl_cute.sim.rules import COMMON, never, sim_rules

LANES = 64
CHIP = "gfx942"

# Values ------------------------------------------------------------------------------------------


class Array:
    """An array of one dimension in global memory."""

    __dsl_leaf__ = True

    def __init__(self, dtype, pointer, size):
        self.dtype, self.pointer, self.size = dtype, pointer, size

    def _address(self, i):
        trace = current_trace("indexing an array")
        ir, at = trace.ir, as_numeric(i).to(Int64).ir_value()
        dynamic = ir.DenseI32ArrayAttr.get([-(2**31)])
        kind = mlir_type(self.dtype, ir)
        made = trace.emit(
            trace.bindings.llvm.GEPOp, self.pointer.type, self.pointer, [at], dynamic, kind, None
        )
        return trace, made.result

    def __getitem__(self, i):
        trace, address = self._address(i)
        kind = mlir_type(self.dtype, trace.ir)
        return self.dtype.from_value(trace.emit(trace.bindings.llvm.LoadOp, kind, address).result)

    def __setitem__(self, i, value):
        trace, address = self._address(i)
        value = as_numeric(value).to(self.dtype).ir_value()
        trace.emit(trace.bindings.llvm.StoreOp, value, address)


class WaveArray(ArrayArgument):
    """An array as an argument: its address and its length."""

    def ir_types(self, ir):
        return [ir.Type.parse("!llvm.ptr<1>"), mlir_type(Int64, ir)]

    def proxy(self, values):
        return Array(self.dtype, values[0], Int64.from_value(values[1]))

    def pack(self, value):
        record = ArrayRecord.of(value)
        return record.address, record.shape[0]

    def unpacker(self):
        return None


# What kernels call -------------------------------------------------------------------------------


def _index(name):
    trace = current_trace(name)
    ir = trace.ir
    axis = ir.Attribute.parse("#gpu<dim x>")
    value = trace.emit_op(name, ir.IndexType.get(), dimension=axis)
    return Int64.from_value(trace.emit_op("arith.index_cast", mlir_type(Int64, ir), value))


def thread():
    """The number of this thread in its block."""
    return _index("gpu.thread_id")


def block():
    """The number of this block in the grid."""
    return _index("gpu.block_id")


def block_size():
    """The number of threads of a block."""
    return _index("gpu.block_dim")


def barrier():
    """Wait for all threads of the block."""
    trace = current_trace("barrier")
    trace.emit(trace.ir.Operation.create, "gpu.barrier")


def first_lane(x):
    """The number that the first lane of each wavefront holds, for all of them."""
    x = as_numeric(x).to(Int32).ir_value()
    return Int32.from_value(current_trace("first_lane").emit_op("rocdl.readfirstlane", x.type, x))


def wave_sum(x):
    """The sum of a number over the lanes of each wavefront."""
    trace, by = current_trace("wave_sum"), LANES // 2
    mode = trace.ir.Attribute.parse("#gpu<shuffle_mode xor>")
    while by:
        numbers = x.ir_value(), Int32(by).ir_value(), Int32(LANES).ir_value()
        made = trace.emit(trace.bindings.gpu.ShuffleOp, *numbers, mode)
        x, by = x + type(x).from_value(made.results[0]), by // 2
    return x


# The machine, for the simulator ------------------------------------------------------------------

RULES = sim_rules("waves", extends=COMMON)


@RULES.register("rocdl.readfirstlane", uniform=never)
def _first_lane(e, op):
    e.let(op.results[0], f"{e.lanes(op.operands[0])}[g.shape.warp_start]")


class AMDGPU(Machine):
    """A GPU with wavefronts of 64 lanes."""

    name = "the simulated AMD GPU"
    lanes = LANES

    def rules(self, kernel):
        return RULES


# The language ------------------------------------------------------------------------------------

_shape = contextvars.ContextVar("shape")


class Kernel(DSLFunction):
    """A kernel: `kernel.launch(grid, block)(x, y)` runs it."""

    def launch(self, grid, block):
        """Return a callable that launches `grid` blocks of `block` threads."""

        def run(*args):
            token = _shape.set((grid, block))
            try:
                with users_frames():
                    self(*args)
            finally:
                _shape.reset(token)

        return run


class Waves(Language):
    """Kernels of AMD GPUs."""

    name = "waves"
    package = __name__  # its frames are no users'
    dialects = (*Language.dialects, "gpu", "rocdl")
    default_float = Float32
    function_class = Kernel
    kept_on_disk = False

    def load_dialects(self, bindings):
        for name in ("gpu", "rocdl"):  # their operations are made by name
            _ = bindings.ir.Context.current.dialects[name]

    def argument_type(self, value, annotation, name):
        if not ArrayRecord.can_read(value):
            return None
        found = WaveArray.of(value, name)
        if found.rank != 1 or not found.is_compact:
            raise DSLCallError(f"'{name}' is no contiguous array of one dimension")
        return found

    def new_function(self, trace, symbol, types):
        ir = trace.ir
        named = {"sym_name": ir.StringAttr.get("kernels")}
        module = ir.Operation.create("gpu.module", attributes=named, regions=1)
        kind = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        attributes = {
            "sym_name": ir.StringAttr.get(symbol),
            "function_type": kind,
            "gpu.kernel": ir.UnitAttr.get(),
        }
        with ir.InsertionPoint(module.regions[0].blocks.append()):
            function = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
        function.regions[0].blocks.append(*types)
        return function

    def end_function(self, trace, operation, values):
        if values:
            raise DSLCallError("a kernel returns nothing", hint="write into an array")
        trace.ir.Operation.create("gpu.return")

    def pipeline(self, settings):
        lower = f"gpu.module(convert-scf-to-cf,convert-gpu-to-rocdl{{chipset={CHIP}}})"
        steps = (
            Step("tidy", "canonicalize,cse"),
            Step("rocdl", lower),
            Step("llvmir", llvmir, suffix=".ll"),
            Step("gcn", machine_code, suffix=".o"),
        )
        return Pipeline("amdgpu", steps)

    def executor(self, stages, symbol, arguments, results, settings):
        kernel = translate(stages["tidy"].module(), symbol, machine=AMDGPU())

        def run(packed):
            shape = _shape.get(None)
            if shape is None:
                raise DSLCallError("a kernel is launched", hint="kernel.launch(grid, block)(...)")
            memory, at = Memory(), 0
            for argument in arguments:
                if isinstance(argument, WaveArray):
                    address, size = packed[at : at + 2]
                    memory.add(address, size * argument.dtype.width // 8, "an array", writable=True)
                at += len(argument.storage)
            kernel.launch(*shape, packed, memory=memory)

        return run


def llvmir(op, context):
    """The pass from the module of kernels to LLVM IR."""
    ir = context.bindings.ir
    made = ir.Module.parse("module {}")
    for outer in op.regions[0].blocks[0].operations:
        if outer.operation.name == "gpu.module":
            for one in outer.operation.regions[0].blocks[0].operations:
                if one.operation.name.startswith("llvm."):
                    made.body.append(one.operation.clone())
    return context.bindings.llvm.translate_module_to_llvmir(made.operation)


def machine_code(op, context):
    """The pass from LLVM IR to an object file for the GPU."""
    return compile_llvmir(context.artifact, NativeTarget(triple="amdgcn-amd-amdhsa", cpu=CHIP))


WAVES = DSL(Waves())
kernel, compile = WAVES.jit, WAVES.compile
