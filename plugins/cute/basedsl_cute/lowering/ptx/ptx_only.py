"""The step `ptx-only`: what PTX says in its own way, on kernels the simulator takes as they are.

One walk by a rule table, in kernels only:

- math with an instruction of its own (fabs, floor, sqrt, fma, population count, ...), and what
  `fastmath<afn>` allows to be approximate; what is left is libdevice's,
- cache operators on loads and stores,
- conversions to and from floats that LLVM does not know (`lowering.narrow_floats`),
- mbarriers on targets before sm_90 (`lowering.before_hopper`),
- assertions, which are dropped unless the option asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from basedsl.mlir import Bindings
from basedsl.objectstage import PipelineContext
from basedsl_cute.dialect.attributes import CACHE_ATTRIBUTE, GRID_CONSTANT, PARAMETERS
from basedsl_cute.hardware.requirements import CLUSTERS, TRY_WAIT, missing_requirement
from basedsl_cute.hardware.targets import Target
from basedsl_cute.lowering.kernel import packed, tensor_map_update, warpgroup
from basedsl_cute.lowering.kernel.builder import Builder
from basedsl_cute.lowering.kernel.storage import element_of
from basedsl_cute.lowering.ptx import before_hopper, narrow_floats
from basedsl_cute.lowering.required import require

RuleFunction = Callable[["Lowering", Any], Any]


@dataclass(frozen=True)
class PtxRule:
    """How an op of an upstream dialect is said in PTX. `lower` returns the replacing value, or
    None to leave the op as it is.
    """

    op: str
    lower: RuleFunction


RULES: dict[str, PtxRule] = {}


def rule(*ops: str) -> Callable[[RuleFunction], RuleFunction]:
    """Enter a function into the table for some ops."""

    def enter(function: RuleFunction) -> RuleFunction:
        RULES.update({op: PtxRule(op=op, lower=function) for op in ops})
        return function

    return enter


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
        names = Lowering(context.bindings, self.target, self.assertions).run(op)
        passes = [name for name, ops in _EXPANSIONS.items() if not names.isdisjoint(ops)]
        if passes:
            manager = context.bindings.passmanager.PassManager
            manager.parse(f"builtin.module({','.join(passes)})").run(op)


class Lowering(Builder):
    """One run of the step."""

    def __init__(self, bindings: Bindings, target: Target, assertions: bool) -> None:
        super().__init__(bindings)
        self.target = target
        self.assertions = assertions
        self.source_type: Any = None
        self.floats = narrow_floats.NarrowFloats(self)

    def run(self, module: Any) -> set[str]:
        """Apply the table to every kernel below `module`; the names of the ops that were there."""
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
            self.source_type = source
            found = RULES.get(name)
            if found is None or not self._replace(found, op):
                self.floats.retype(name, op)
        if self.floats.in_parameters:
            self._convert_arguments(module)
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

    def _replace(self, found: PtxRule, op: Any) -> bool:
        self.at(op)
        value = found.lower(self, op)
        if value is None:
            return False
        if value is not ERASED:
            op.results[0].replace_all_uses_with(value)
        op.erase()
        return True


ERASED: Any = object()  # what a rule returns for an op without results that it has replaced


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


@rule(*_INTRINSICS)
def intrinsic(b: Lowering, op: Any) -> Any:
    """The LLVM intrinsic, which NVPTX has an instruction for."""
    return b.intrinsic(_INTRINSICS[op.name], op.results[0].type, list(op.operands))


@rule("math.ctlz", "math.cttz", "math.absi")
def flagged_intrinsic(b: Lowering, op: Any) -> Any:
    """llvm.ctlz, llvm.cttz, llvm.abs: the flag says that zero (the least integer) is defined."""
    name = {"math.ctlz": "llvm.ctlz", "math.cttz": "llvm.cttz", "math.absi": "llvm.abs"}[op.name]
    no = b.constant(0, b.ir.IntegerType.get_signless(1))
    return b.intrinsic(name, op.results[0].type, [op.operands[0], no])


# LLVM, FPClassTest: which classes of floats each test accepts.
_CLASSES = {"math.isnan": 0x003, "math.isinf": 0x204, "math.isfinite": 0x1F8}


@rule(*_CLASSES)
def classify(b: Lowering, op: Any) -> Any:
    """llvm.is.fpclass."""
    mask = b.constant(_CLASSES[op.name], b.i32)
    return b.intrinsic("llvm.is.fpclass", op.results[0].type, [op.operands[0], mask])


@rule("math.sqrt")
def sqrt(b: Lowering, op: Any) -> Any:
    """sqrt.rn, rounded correctly; sqrt.approx for f32 if it may be approximate."""
    if _may_approximate(op) and str(element_of(op.operands[0].type)) == "f32":
        return _approximate(b, op, "sqrt.approx.f32 $0, $1;")
    if str(element_of(op.operands[0].type)) in ("f32", "f64"):
        return b.intrinsic("llvm.sqrt", op.results[0].type, list(op.operands))
    return _in_f32(b, op, lambda x: b.intrinsic("llvm.sqrt", b.f32, [x]))


@rule("math.rsqrt")
def rsqrt(b: Lowering, op: Any) -> Any:
    """rsqrt.approx.f32 (2 ulp, PTX ISA 9.7.3.20), as CUDA's rsqrtf; f64 is libdevice's."""
    return _instruction(b, op, "rsqrt.approx.f32 $0, $1;")


@rule("math.exp2")
def exp2(b: Lowering, op: Any) -> Any:
    """ex2.approx.f32 (2 ulp, PTX ISA 9.7.3.23), as CUDA's exp2f; f64 is libdevice's."""
    return _instruction(b, op, "ex2.approx.f32 $0, $1;")


@rule("math.log2", "math.sin", "math.cos", "math.tanh")
def approximate(b: Lowering, op: Any) -> Any:
    """The f32 instruction if the op may be approximate (PTX ISA 9.7.3.18 and following)."""
    return (
        _instruction(b, op, f"{_APPROXIMATE[op.name]}.approx.f32 $0, $1;")
        if _may_approximate(op)
        else None
    )


_APPROXIMATE = {"math.log2": "lg2", "math.sin": "sin", "math.cos": "cos", "math.tanh": "tanh"}
_LOG2_E, _LN_2 = 1.4426950408889634, 0.6931471805599453


@rule("math.exp")
def exp(b: Lowering, op: Any) -> Any:
    """ex2.approx(x * log2(e)) if it may be approximate."""
    if not _may_approximate(op):
        return None

    def through_exp2(x: Any) -> Any:
        return _asm(b, "ex2.approx.f32 $0, $1;", b.multiply(x, _LOG2_E))

    return _in_f32(b, op, through_exp2)


@rule("math.log")
def log(b: Lowering, op: Any) -> Any:
    """lg2.approx(x) * ln(2) if it may be approximate."""
    if not _may_approximate(op):
        return None
    return _in_f32(b, op, lambda x: b.multiply(_asm(b, "lg2.approx.f32 $0, $1;", x), _LN_2))


def _may_approximate(op: Any) -> bool:
    attributes = op.attributes
    flags = str(attributes["fastmath"]) if "fastmath" in attributes else ""
    return "afn" in flags or "fast>" in flags


def _asm(b: Lowering, text: str, x: Any) -> Any:
    return b.assembly(text, "=f,f", [b.f32], [x])


def _instruction(b: Lowering, op: Any, text: str) -> Any:
    if str(element_of(op.operands[0].type)) == "f64":
        return None
    return _approximate(b, op, text)


def _approximate(b: Lowering, op: Any, text: str) -> Any:
    return _in_f32(b, op, lambda x: _asm(b, text, x))


def _in_f32(b: Lowering, op: Any, compute: Callable[[Any], Any]) -> Any:
    """`compute` on each element as an f32; None for f64, which it would not be exact enough for."""
    element = element_of(op.operands[0].type)
    kind = str(element)
    if kind == "f64":
        return None

    def one(x: Any) -> Any:
        if kind == "f32":
            return compute(x)
        wide = b.emit("arith.extf", [b.f32], [x])
        return b.emit("arith.truncf", [element], [compute(wide)])

    return b.elementwise(op.operands[0], element, one)


# Memory ------------------------------------------------------------------------------------------


@rule("llvm.load")
def load(b: Lowering, op: Any) -> Any:
    """`ld` with a cache operator (PTX ISA 9.7.9.8) where one was asked for."""
    cache = _cache_of(op)
    if cache is None:
        return None
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
    return words.join(parts)


@rule("llvm.store")
def store(b: Lowering, op: Any) -> Any:
    """`st` with a cache operator (PTX ISA 9.7.9.11) where one was asked for."""
    cache = _cache_of(op)
    if cache is None:
        return None
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
    return ERASED


@rule("nvvm.cp.async.shared.global")
def copy_async(b: Lowering, op: Any) -> Any:
    """With a predicate, which `lower-cute` makes a size of: cp.async's operand `ignore-src` (PTX
    ISA 9.7.9.25.3.1), which costs nothing; for a size in a register ptxas computes addresses.
    """
    if len(op.operands) < 3:
        return None
    chosen = op.operands[2].owner
    if getattr(chosen, "name", "") != "arith.select":
        return None
    cache = str(op.attributes["modifier"]).rpartition(" ")[2].rstrip(">")
    size = int(op.attributes["size"])
    text = f"cp.async.{cache}.shared.global [$0], [$1], {size}, !$2;"
    operands = [op.operands[0], op.operands[1], chosen.operands[0]]
    b.assembly(text, "r,l,b", [], operands, has_side_effects=True)
    return ERASED


def _braced(registers: list[str]) -> str:
    return registers[0] if len(registers) == 1 else "{" + ", ".join(registers) + "}"


def _cache_of(op: Any) -> str | None:
    attributes = op.attributes
    return str(attributes[CACHE_ATTRIBUTE].value) if CACHE_ATTRIBUTE in attributes else None


def _space_of(pointer: Any) -> str:
    spaces = {"!llvm.ptr<1>": ".global", "!llvm.ptr<3>": ".shared"}
    return spaces.get(str(pointer.type), "")


class _Words:
    """The registers that a value of 8 to 256 bits travels in."""

    def __init__(self, b: Lowering, type: Any) -> None:
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
        """Byte offset and number of words of each instruction: 128 bits at most (256 only from
        sm_100 on).
        """
        return [(8 * i, min(2, self.count - i)) for i in range(0, self.count, 2)]

    def instruction(self, head: str, count: int) -> str:
        """`ld.global.cs.v2.b64`."""
        return f"{head}.v{count}.{self.kind}" if count > 1 else f"{head}.{self.kind}"

    def join(self, parts: list[Any]) -> Any:
        """The value from its words."""
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
        """The words of a value."""
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


@rule("gpu.func")
def function(b: Lowering, op: Any) -> Any:
    """Keep what is said of parameters that are passed by value; the function stays."""
    ir = b.ir
    if "arg_attrs" in op.attributes:
        marks = [ir.DictAttr(mark) for mark in ir.ArrayAttr(op.attributes["arg_attrs"])]
        if any("llvm.byval" in mark for mark in marks):
            kept = []
            for mark in marks:
                named = {one.name: one.attr for one in mark}
                if named.pop(GRID_CONSTANT, None) is not None:
                    named["nvvm.grid_constant"] = ir.UnitAttr.get()
                kept.append(ir.DictAttr.get(named))
            op.attributes[PARAMETERS] = ir.ArrayAttr.get(kept)
    return None


def restore_parameters(op: Any) -> None:
    """Give the llvm.func kernels of a module their parameters' attributes back."""
    for module in op.regions[0].blocks[0].operations:
        if module.operation.name != "gpu.module":
            continue
        for one in module.operation.regions[0].blocks[0].operations:
            attributes = one.operation.attributes
            if one.operation.name == "llvm.func" and PARAMETERS in attributes:
                attributes["arg_attrs"] = attributes[PARAMETERS]
                del attributes[PARAMETERS]


@rule("cute.wgmma")
def wgmma(b: Lowering, op: Any) -> Any:
    """`wgmma.mma_async` as inline PTX, one block for all its steps."""
    warpgroup.to_ptx(b, op)
    return ERASED


@rule("cute.dsmem_store")
def dsmem_store(b: Lowering, op: Any) -> Any:
    """`st.async` as inline PTX."""
    target, barrier, value = op.operands
    wide = str(value.type) == "vector<4xi32>"
    words = [value]
    if wide:
        words = [b.emit("llvm.extractelement", [b.i32], [value, b.constant(i)]) for i in range(4)]
    letter = "l" if str(value.type) == "i64" else "r"
    kind = ".v4.b32" if wide else ".b64" if letter == "l" else ".b32"
    given = "{$2, $3, $4, $5}" if wide else "$2"
    text = f"st.async.shared::cluster.mbarrier::complete_tx::bytes{kind} [$0], {given}, [$1];"
    constraints = ",".join(["r", "r", *[letter] * len(words), "~{memory}"])
    b.assembly(text, constraints, [], [target, barrier, *words], has_side_effects=True)
    return ERASED


@rule("cute.tensormap_replace")
def tensormap_replace(b: Lowering, op: Any) -> Any:
    """`tensormap.replace` as inline PTX."""
    tensor_map_update.replace_to_ptx(b, op)
    return ERASED


@rule("cute.tensormap_release")
def tensormap_release(b: Lowering, op: Any) -> Any:
    """`tensormap.cp_fenceproxy` as inline PTX."""
    tensor_map_update.release_to_ptx(b, op)
    return ERASED


# The rest ----------------------------------------------------------------------------------------


@rule(*before_hopper.STAND_INS)
def stand_in(b: Lowering, op: Any) -> Any:
    """What targets before sm_90 have instead."""
    if TRY_WAIT.is_met_by(b.target):
        return None
    value = before_hopper.STAND_INS[op.name](b, op)
    return ERASED if value is None else value


@rule("cf.assert")
def assertion(b: Lowering, op: Any) -> Any:
    """Nothing, unless assertions are asked for."""
    return None if b.assertions else ERASED


@rule("arith.fptosi", "arith.fptoui")
def to_integer(b: Lowering, op: Any) -> Any:
    """llvm.fptosi.sat: `cvt.rzi` saturates and makes zero of NaN; without it LLVM may fold a
    constant that is out of range into anything.
    """
    name = {"arith.fptosi": "llvm.fptosi.sat", "arith.fptoui": "llvm.fptoui.sat"}[op.name]
    return b.intrinsic(name, op.results[0].type, [op.operands[0]])


@rule("arith.truncf")
def truncate(b: Lowering, op: Any) -> Any:
    """Conversions to floats that LLVM does not know."""
    return b.floats.truncate(op)


@rule("arith.extf")
def extend(b: Lowering, op: Any) -> Any:
    """Conversions from floats that LLVM does not know."""
    return b.floats.extend(op, b.source_type)


@rule("vector.bitcast")
def recast_vector(b: Lowering, op: Any) -> Any:
    """Between bytes and what shares them."""
    return packed.recast(b, op)


@rule("arith.bitcast")
def reinterpret(b: Lowering, op: Any) -> Any:
    """Bits of floats that LLVM does not know."""
    return b.floats.bitcast(op, b.source_type)


@rule("arith.constant")
def constant(b: Lowering, op: Any) -> Any:
    """Constants of floats that LLVM does not know are such of their bits."""
    return b.floats.constant(op)
