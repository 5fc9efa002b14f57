"""The step `ptx-only`: a walk over kernels by a rule table, for what only PTX has.

The simulator takes the same kernels without this step. The rules are for:

- stores with a predicate for each element (`lowering.ptx.predicated_stores`),
- math with an instruction of its own (fabs, floor, sqrt, fma, population count, ...), and what
  `fastmath<afn>` allows to be approximate; libdevice has the rest,
- cache operators on loads and stores,
- conversions to and from floats that LLVM does not know (`lowering.ptx.narrow_floats`),
- mbarriers on targets before sm_90 (`lowering.ptx.before_hopper`),
- assertions, which are dropped unless the option asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from basedsl import (
    Bindings,
    Erase,
    Keep,
    PipelineContext,
    Replace,
    Rule,
    RuleResult,
    RuleTable,
    apply_result,
    spoken,
)
from basedsl_cute.dialect.attributes import (
    CACHE_ATTRIBUTE,
    GRID_CONSTANT,
    PARAMETERS,
    PREFERRED_CLUSTER_ATTRIBUTE,
)
from basedsl_cute.dialect.cluster import DsmemStore
from basedsl_cute.dialect.launch_control import LaunchResponse
from basedsl_cute.dialect.tensor_map import TensormapRelease, TensormapReplace
from basedsl_cute.dialect.tensor_memory import TmemLoad, TmemStore
from basedsl_cute.dialect.warpgroup import PtxWgmma
from basedsl_cute.hardware.requirements import (
    CLUSTERS,
    LAUNCH_CONTROL,
    PREFERRED_CLUSTERS,
    PTX_VERSIONS,
    TCGEN05,
    TCGEN05_LD_RED,
    TRY_WAIT,
    missing_requirement,
)
from basedsl_cute.hardware.targets import Target
from basedsl_cute.lowering.kernel import packed
from basedsl_cute.lowering.kernel.builder import Builder
from basedsl_cute.lowering.kernel.storage import element_of
from basedsl_cute.lowering.kernel_build import kernel_build
from basedsl_cute.lowering.ptx import (
    before_hopper,
    launch_control,
    narrow_floats,
    tensor_map_update,
    tensor_memory,
    warpgroup,
)
from basedsl_cute.lowering.ptx.predicated_stores import join_stores
from basedsl_cute.lowering.ptx.register_arrays import split_store
from basedsl_cute.lowering.ptx.stack_slots import has_alternative, name_slots
from basedsl_cute.lowering.required import require

# A rule takes the operation: a cute one as an instance of the class that declares it.
RuleFunction = Callable[["PtxRewriter", Any], RuleResult]
RULES: RuleTable[RuleFunction, Rule[RuleFunction]] = RuleTable("ptx-only", Rule)


# Passes that few kernels need, and the ops that make them needed.
_EXPANSIONS = {
    "convert-math-to-funcs": ("math.ipowi",),
    "convert-vector-to-llvm": (
        "vector.shape_cast",
        "vector.multi_reduction",
        "vector.transpose",
        "vector.contract",
        "vector.outerproduct",
        "vector.gather",
        "vector.extract_strided_slice",
        "vector.constant_mask",
        "vector.create_mask",
    ),
}


@dataclass(frozen=True)
class PtxOnly:
    """The step. `assertions` keeps `cf.assert`, as a call of CUDA's __assertfail."""

    target: Target
    assertions: bool = False

    def __call__(self, op: Any, context: PipelineContext) -> None:
        if context.may_contain("scf.for"):
            join_stores(op, context.bindings)
        names = PtxRewriter(context.bindings, self.target, self.assertions).run(op)
        kernel_build(context).ptx_version = max(PTX_VERSIONS.get(name, 0) for name in (*names, ""))
        passes = [name for name, ops in _EXPANSIONS.items() if not names.isdisjoint(ops)]
        if passes:
            manager = context.bindings.passmanager.PassManager
            manager.parse(f"builtin.module({','.join(passes)})").run(op)


class PtxRewriter(Builder):
    """One run of the step."""

    def __init__(self, bindings: Bindings, target: Target, assertions: bool) -> None:
        super().__init__(bindings)
        self.target = target
        self.assertions = assertions
        self.source_type: Any = None
        self.floats = narrow_floats.NarrowFloats(self)

    def run(self, module: Any) -> set[str]:
        """Apply the table to every kernel below `module`. Returns the names of the ops that were
        there.
        """
        ops: list[tuple[str, Any, Any]] = []

        def collect(op: Any) -> Any:
            name = op.name
            # What these convert from is not to be seen once their operand has been lowered.
            source = op.operands[0].type if name in ("arith.extf", "arith.bitcast") else None
            ops.append((name, op, source))
            return self.ir.WalkResult.ADVANCE

        for inner in module.regions[0].blocks[0].operations:
            if inner.operation.name == "gpu.module":
                inner.operation.walk(collect, self.ir.WalkOrder.PRE_ORDER)
        for name, op, source in ops:
            if name.startswith("nvvm."):
                require(missing_requirement(name, op, self.target), self.target, op)
            elif name == "gpu.func" and max(op.attributes.get("nvvm.cluster_dim", (1,))) > 1:
                require(CLUSTERS, self.target, op)  # LLVM would leave the cluster out
            elif name == "gpu.func" and PREFERRED_CLUSTER_ATTRIBUTE in op.attributes:
                require(PREFERRED_CLUSTERS, self.target, op)
            self.source_type = source
            found = RULES.get(name)
            if found is None or not self._apply(found, op):
                self.floats.retype(name, op)
        if self.floats.in_parameters:
            self._convert_arguments(module)
        if any(name == "scf.if" and has_alternative(op) for name, op, _ in ops):
            name_slots(self.ir, [op for name, op, _ in ops if name == "gpu.func"])
        return {name for name, _, _ in ops}

    def _convert_arguments(self, module: Any) -> None:
        launches: list[Any] = []

        def collect(op: Any) -> Any:
            if op.name == "gpu.launch_func":
                launches.append(op)
            return (
                self.ir.WalkResult.SKIP if op.name == "gpu.module" else self.ir.WalkResult.ADVANCE
            )

        module.walk(collect, self.ir.WalkOrder.PRE_ORDER)
        for launch in launches:
            self.floats.convert_arguments(launch)

    def _apply(self, rule: Rule[RuleFunction], op: Any) -> bool:
        """Apply a rule to `op`. Returns True if `op` is gone."""
        self.at(op)
        view = self.dialect.view(op) if rule.op.startswith("cute.") else op
        return apply_result(rule, op, rule.apply(self, view))


# Math --------------------------------------------------------------------------------------------

_INTRINSICS = {
    "math.absf": "llvm.fabs",
    "math.ceil": "llvm.ceil",
    "math.floor": "llvm.floor",
    "math.trunc": "llvm.trunc",
    "math.round": "llvm.round",
    "math.roundeven": "llvm.roundeven",
    "math.copysign": "llvm.copysign",
    "math.fma": "llvm.fma",
    "math.ctpop": "llvm.ctpop",
}


@RULES.register(*_INTRINSICS)
def intrinsic(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by the LLVM intrinsic, which NVPTX has an instruction for."""
    name = _INTRINSICS[op.name]
    return Replace(b.intrinsic(name, op.results[0].type, list(op.operands)))


@RULES.register("math.ctlz", "math.cttz", "math.absi")
def flagged_intrinsic(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by llvm.ctlz, llvm.cttz, llvm.abs, whose flag says that zero (the least integer) is
    defined.
    """
    name = {"math.ctlz": "llvm.ctlz", "math.cttz": "llvm.cttz", "math.absi": "llvm.abs"}[op.name]
    no = b.constant(0, b.ir.IntegerType.get_signless(1))
    return Replace(b.intrinsic(name, op.results[0].type, [op.operands[0], no]))


# LLVM, FPClassTest: which classes of floats each test accepts.
_CLASSES = {"math.isnan": 0x003, "math.isinf": 0x204, "math.isfinite": 0x1F8}


@RULES.register(*_CLASSES)
def classify(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by llvm.is.fpclass."""
    mask = b.constant(_CLASSES[op.name], b.i32)
    result = op.results[0].type
    return Replace(b.intrinsic("llvm.is.fpclass", result, [op.operands[0], mask]))


@RULES.register("math.sqrt")
def sqrt(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by sqrt.rn, rounded correctly; by sqrt.approx for f32 if it may be approximate."""
    if _may_approximate(op) and str(element_of(op.operands[0].type)) == "f32":
        return _approximate(b, op, "sqrt.approx.f32 $0, $1;")
    if str(element_of(op.operands[0].type)) in ("f32", "f64"):
        return Replace(b.intrinsic("llvm.sqrt", op.results[0].type, list(op.operands)))
    return _in_f32(b, op, lambda x: b.intrinsic("llvm.sqrt", b.f32, [x]))


@RULES.register("math.rsqrt")
def rsqrt(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by rsqrt.approx.f32 (2 ulp, PTX ISA 9.7.3.20), as CUDA's rsqrtf; not for f64."""
    return _instruction(b, op, "rsqrt.approx.f32 $0, $1;")


@RULES.register("math.exp2")
def exp2(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by ex2.approx.f32 (2 ulp, PTX ISA 9.7.3.23), as CUDA's exp2f; not for f64. With .ftz
    it is one machine instruction, else it takes three more for results below the normal floats.
    """
    return _instruction(b, op, f"{_EX2_FTZ if _may_approximate(op) else 'ex2.approx.f32'} $0, $1;")


@RULES.register("math.log2", "math.sin", "math.cos", "math.tanh")
def approximate(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by the f32 instruction (PTX ISA 9.7.3.18 and following) if it may be approximate."""
    if not _may_approximate(op):
        return Keep()
    return _instruction(b, op, f"{_APPROXIMATE[op.name]}.approx.f32 $0, $1;")


_APPROXIMATE = {"math.log2": "lg2", "math.sin": "sin", "math.cos": "cos", "math.tanh": "tanh"}
_EX2_FTZ = "ex2.approx.ftz.f32"
_LOG2_E, _LN_2 = 1.4426950408889634, 0.6931471805599453


@RULES.register("math.exp")
def exp(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by ex2.approx.ftz(x * log2(e)) if it may be approximate, as CUDA's __expf."""
    if not _may_approximate(op):
        return Keep()

    def through_exp2(x: Any) -> Any:
        return _asm(b, f"{_EX2_FTZ} $0, $1;", b.multiply(x, _LOG2_E))

    return _in_f32(b, op, through_exp2)


@RULES.register("math.log")
def log(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by lg2.approx(x) * ln(2) if it may be approximate."""
    if not _may_approximate(op):
        return Keep()
    return _in_f32(b, op, lambda x: b.multiply(_asm(b, "lg2.approx.f32 $0, $1;", x), _LN_2))


def _may_approximate(op: Any) -> bool:
    attributes = op.attributes
    flags = str(attributes["fastmath"]) if "fastmath" in attributes else ""
    return "afn" in flags or "fast>" in flags


def _asm(b: PtxRewriter, text: str, x: Any) -> Any:
    return b.assembly(text, "=f,f", [b.f32], [x])


def _instruction(b: PtxRewriter, op: Any, text: str) -> RuleResult:
    if str(element_of(op.operands[0].type)) == "f64":
        return Keep()
    return _approximate(b, op, text)


def _approximate(b: PtxRewriter, op: Any, text: str) -> RuleResult:
    return _in_f32(b, op, lambda x: _asm(b, text, x))


def _in_f32(b: PtxRewriter, op: Any, compute: Callable[[Any], Any]) -> RuleResult:
    """Replace `op` by `compute` on each element as an f32; keep it for f64, where that is not exact
    enough.
    """
    element = element_of(op.operands[0].type)
    kind = str(element)
    if kind == "f64":
        return Keep()

    def one(x: Any) -> Any:
        if kind == "f32":
            return compute(x)
        wide = b.emit("arith.extf", [b.f32], [x])
        return b.emit("arith.truncf", [element], [compute(wide)])

    return Replace(b.elementwise(op.operands[0], element, one))


# Memory ------------------------------------------------------------------------------------------


@RULES.register("llvm.load")
def load(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by `ld` with a cache operator (PTX ISA 9.7.9.8) where one was asked for."""
    cache = _cache_of(op)
    if cache is None:
        return Keep()
    words = _Words(b, op.results[0].type)
    head = f"ld{_space_of(op.operands[0])}.{cache}"
    parts: list[Any] = []
    for start, count in words.accesses():
        registers = [f"${i}" for i in range(count)]
        text = f"{words.instruction(head, count)} {_braced(registers)}, [${count}+{start}];"
        outputs = ",".join([f"={words.constraint}"] * count)
        types = [words.type] * count
        loaded = b.assembly(text, f"{outputs},l", types, [op.operands[0]], has_side_effects=True)
        if count == 1:
            parts.append(loaded)
        else:
            parts += [b.extract_value(loaded, i, words.type) for i in range(count)]
    return Replace(words.join(parts))


@RULES.register("llvm.store")
def store(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by `st` with a cache operator (PTX ISA 9.7.9.11) where one was asked for, and by
    several where an array of registers is filled, copied or converted.
    """
    cache = _cache_of(op)
    if cache is None:
        return Erase() if split_store(b, op) else Keep()
    value, address = op.operands[0], op.operands[1]
    words = _Words(b, value.type)
    head = f"st{_space_of(address)}.{cache}"
    parts = words.split(value)
    for start, count in words.accesses():
        registers = [f"${i + 1}" for i in range(count)]
        text = f"{words.instruction(head, count)} [$0+{start}], {_braced(registers)};"
        constraints = ",".join(["l", *[words.constraint] * count])
        taken, parts = parts[:count], parts[count:]
        b.assembly(text, constraints, [], [address, *taken], has_side_effects=True)
    return Erase()


@RULES.register("nvvm.cp.async.shared.global")
def copy_async(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace a predicated copy by one with the operand `ignore-src` (PTX ISA 9.7.9.25.3.1), which
    costs nothing: for a size in a register, as `lower-cute` makes it, ptxas computes addresses.
    """
    if len(op.operands) < 3:
        return Keep()
    chosen = op.operands[2].owner
    if getattr(chosen, "name", "") != "arith.select":
        return Keep()
    cache = str(op.attributes["modifier"]).rpartition(" ")[2].rstrip(">")
    size = int(op.attributes["size"])
    text = f"cp.async.{cache}.shared.global [$0], [$1], {size}, !$2;"
    operands = [op.operands[0], op.operands[1], chosen.operands[0]]
    b.assembly(text, "r,l,b", [], operands, has_side_effects=True)
    return Erase()


def _braced(registers: list[str]) -> str:
    return registers[0] if len(registers) == 1 else "{" + ", ".join(registers) + "}"


def _cache_of(op: Any) -> str | None:
    attributes = op.attributes
    return str(attributes[CACHE_ATTRIBUTE].value) if CACHE_ATTRIBUTE in attributes else None


def _space_of(pointer: Any) -> str:
    spaces = {"!llvm.ptr<1>": ".global", "!llvm.ptr<3>": ".shared"}
    return spaces.get(str(pointer.type), "")


class _Words:
    """The registers that carry a value of 8 to 256 bits."""

    def __init__(self, b: PtxRewriter, type: Any) -> None:
        self.b = b
        self.value_type = type
        self.element = element_of(type)
        self.lanes = 1 if self.element == type else type.shape[0]
        bits = self.lanes * self.element.width
        width = min(bits, 64)
        self.count = bits // width
        self.type = b.ir.IntegerType.get_signless(max(16, width))
        self.kind = f"b{width}"
        self.width = width
        self.constraint = {8: "h", 16: "h", 32: "r", 64: "l"}[width]

    def accesses(self) -> list[tuple[int, int]]:
        """Return byte offset and number of words of each instruction: at most 128 bits (256 only
        from sm_100 on).
        """
        return [(8 * i, min(2, self.count - i)) for i in range(0, self.count, 2)]

    def instruction(self, head: str, count: int) -> str:
        """Return the instruction's name for `count` words, as `ld.global.cs.v2.b64`."""
        return f"{head}.v{count}.{self.kind}" if count > 1 else f"{head}.{self.kind}"

    def join(self, parts: list[Any]) -> Any:
        """Build the value from its words."""
        b, ir = self.b, self.b.ir
        word = ir.IntegerType.get_signless(self.width)
        if self.type != word:
            parts = [b.emit("arith.trunci", [word], [part]) for part in parts]
        if self.lanes == 1 and self.count == 1:
            return b.bitcast(parts[0], self.element)
        words = b.emit("vector.from_elements", [ir.VectorType.get([self.count], word)], parts)
        vector = ir.VectorType.get([self.lanes], self.element)
        return b.emit("vector.bitcast", [vector], [words]) if words.type != vector else words

    def split(self, value: Any) -> list[Any]:
        """Split a value into its words."""
        b, ir = self.b, self.b.ir
        word = ir.IntegerType.get_signless(self.width)
        if self.lanes == 1:
            parts = [b.bitcast(value, word)]
        else:
            vector = ir.VectorType.get([self.count], word)
            words = b.emit("vector.bitcast", [vector], [value]) if value.type != vector else value
            parts = [b.extract(words, i) for i in range(self.count)]
        if self.type != word:
            parts = [b.emit("arith.extui", [self.type], [part]) for part in parts]
        return parts


# Parameters --------------------------------------------------------------------------------------


@RULES.register("gpu.func")
def function(b: PtxRewriter, op: Any) -> RuleResult:
    """Keep the function, and save the attributes of its parameters, which `convert-gpu-to-nvvm`
    drops, for `restore_parameters`.
    """
    ir = b.ir
    if "arg_attrs" in op.attributes:
        kept = []
        for mark in ir.ArrayAttr(op.attributes["arg_attrs"]):
            named = {one.name: one.attr for one in ir.DictAttr(mark)}
            if named.pop(GRID_CONSTANT, None) is not None:
                named["nvvm.grid_constant"] = ir.UnitAttr.get()
            kept.append(ir.DictAttr.get(named))
        op.attributes[PARAMETERS] = ir.ArrayAttr.get(kept)
    return Keep()


def restore_parameters(op: Any) -> None:
    """Restore the attributes of the parameters of a module's kernels, now llvm.func ops."""
    for module in op.regions[0].blocks[0].operations:
        if module.operation.name != "gpu.module":
            continue
        for one in module.operation.regions[0].blocks[0].operations:
            attributes = one.operation.attributes
            if one.operation.name == "llvm.func" and PARAMETERS in attributes:
                attributes["arg_attrs"] = attributes[PARAMETERS]
                del attributes[PARAMETERS]


@RULES.register("cute.ptx_wgmma")
def wgmma(b: PtxRewriter, op: PtxWgmma) -> RuleResult:
    """Replace by `wgmma.mma_async` as inline PTX, one block for all steps."""
    warpgroup.to_ptx(b, op)
    return Erase()


@RULES.register("cute.tmem_load")
def tmem_load(b: PtxRewriter, op: TmemLoad) -> RuleResult:
    """Replace by `tcgen05.ld` and the wait for it as inline PTX."""
    require(TCGEN05_LD_RED if op.reduction else TCGEN05, b.target, op.op)
    tensor_memory.load_to_ptx(b, op)
    return Erase()


@RULES.register("cute.tmem_store")
def tmem_store(b: PtxRewriter, op: TmemStore) -> RuleResult:
    """Replace by `tcgen05.st` as inline PTX."""
    require(TCGEN05, b.target, op.op)
    tensor_memory.store_to_ptx(b, op)
    return Erase()


@RULES.register("cute.launch_response")
def launch_response(b: PtxRewriter, op: LaunchResponse) -> RuleResult:
    """Replace by `clusterlaunchcontrol.query_cancel` as inline PTX."""
    require(LAUNCH_CONTROL, b.target, op.op)
    return Replace(launch_control.response_to_ptx(b, op))


@RULES.register("cute.dsmem_store")
def dsmem_store(b: PtxRewriter, op: DsmemStore) -> RuleResult:
    """Replace by `st.async` as inline PTX."""
    value = op.value
    wide = str(value.type) == "vector<4xi32>"
    words = [value]
    if wide:
        words = [b.emit("llvm.extractelement", [b.i32], [value, b.constant(i)]) for i in range(4)]
    letter = "l" if str(value.type) == "i64" else "r"
    kind = ".v4.b32" if wide else ".b64" if letter == "l" else ".b32"
    given = "{$2, $3, $4, $5}" if wide else "$2"
    text = f"st.async.shared::cluster.mbarrier::complete_tx::bytes{kind} [$0], {given}, [$1];"
    constraints = ",".join(["r", "r", *[letter] * len(words), "~{memory}"])
    b.assembly(text, constraints, [], [op.target, op.barrier, *words], has_side_effects=True)
    return Erase()


@RULES.register("cute.tensormap_replace")
def tensormap_replace(b: PtxRewriter, op: TensormapReplace) -> RuleResult:
    """Replace by `tensormap.replace` as inline PTX."""
    tensor_map_update.replace_to_ptx(b, op)
    return Erase()


@RULES.register("cute.tensormap_release")
def tensormap_release(b: PtxRewriter, op: TensormapRelease) -> RuleResult:
    """Replace by `tensormap.cp_fenceproxy` as inline PTX."""
    tensor_map_update.release_to_ptx(b, op)
    return Erase()


# The rest ----------------------------------------------------------------------------------------


@RULES.register(*before_hopper.STAND_INS)
def stand_in(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by the instructions that targets before sm_90 have instead."""
    if TRY_WAIT.is_met_by(b.target):
        return Keep()
    return before_hopper.STAND_INS[op.name](b, op)


@RULES.register("cf.assert")
def assertion(b: PtxRewriter, op: Any) -> RuleResult:
    """Erase, unless assertions are asked for."""
    if not b.assertions:
        return Erase()
    text = b.ir.StringAttr(op.attributes["msg"]).value
    if text != spoken(text):
        op.attributes["msg"] = b.ir.StringAttr.get(spoken(text))
    return Keep()


@RULES.register("arith.fptosi", "arith.fptoui")
def to_integer(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace by llvm.fptosi.sat: `cvt.rzi` saturates and makes zero of NaN; else LLVM may fold a
    constant that is out of range into anything.
    """
    name = {"arith.fptosi": "llvm.fptosi.sat", "arith.fptoui": "llvm.fptoui.sat"}[op.name]
    return Replace(b.intrinsic(name, op.results[0].type, [op.operands[0]]))


@RULES.register("arith.truncf")
def truncate(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace conversions to floats that LLVM has no type for."""
    return b.floats.truncate(op)


@RULES.register("arith.extf")
def extend(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace conversions from floats that LLVM has no type for."""
    return b.floats.extend(op, b.source_type)


@RULES.register("vector.bitcast")
def recast_vector(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace conversions between bytes and elements that share them."""
    return packed.recast(b, op)


@RULES.register("arith.bitcast")
def reinterpret(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace reinterpretations of the bits of floats that LLVM has no type for."""
    return b.floats.bitcast(op, b.source_type)


@RULES.register("arith.constant")
def constant(b: PtxRewriter, op: Any) -> RuleResult:
    """Replace constants of floats that LLVM has no type for by their bits."""
    return b.floats.constant(op)
