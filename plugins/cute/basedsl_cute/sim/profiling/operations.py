"""Operations as a profile sees them: the kind of each, and how many instructions it becomes.

The counts of memory, tensor-core, barrier and shuffle instructions are those of the machine code.
Those of arithmetic are what the operations need at least: ptxas folds additions into multiply-adds
and addresses, moves work out of loops, and expands divisions and functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from basedsl_cute.dialect.warpgroup import WGMMA_TYPES
from basedsl_cute.sim.rules.memory import WIDEST
from basedsl_cute.sim.site import Site
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.types import FloatType, PtrType, VectorType, element_type

GLOBAL, SHARED, LOCAL, CONSTANT, CLUSTER = 1, 3, 5, 4, 7
SPACES = {0: "generic", GLOBAL: "global", SHARED: "shared", LOCAL: "local", CONSTANT: "constant",
          CLUSTER: "cluster"}  # fmt: skip


@dataclass(slots=True, eq=False)
class MemoryReference:
    """A place where a kernel touches memory: the operand with the address, the bytes of a lane's
    access, and how many instructions that takes. `rows` is how many lanes give addresses of 16
    bytes (ldmatrix, stmatrix), 0 where all do.
    """

    operand: int
    space: int
    nbytes: int
    instructions: int
    writes: bool
    rows: int = 0
    atomic: bool = False


@dataclass(slots=True, eq=False)
class ProfiledOperation:
    """One operation of a kernel: `kind` in the words of a table, `count` instructions a warp, and
    the flops of tensor cores. `memory` is set for what touches memory by lanes, `bytes` for copies
    whose size is known.
    """

    op: Op
    kind: str
    count: float
    flops: float = 0.0  # of each execution by a warp
    issued_flops: float = 0.0  # of all executions, where operands say how much each does
    memory: MemoryReference | None = None
    requests: int = 0
    bytes: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    lines: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    diverged: int = 0
    event: dict[str, Any] = field(default_factory=dict)

    @property
    def site(self) -> Site:
        return self.op.site


_FREE = re.compile(
    r"arith\.(constant|index_cast|index_castui|bitcast|extsi|extui|trunci)|"
    r"llvm\.(mlir\..*|alloca|addrspacecast|bitcast|ptrtoint|inttoptr|extractvalue|insertvalue|"
    r"extractelement|insertelement|shufflevector|freeze|sext|zext|trunc|intr\.(assume|lifetime.*|"
    r"expect|ssa.*|dbg.*|experimental.*)|unreachable)|"
    r"vector\.(?!fma|reduction|multi_reduction).*|ub\..*|scf\.(yield|condition|index_switch)|"
    r"gpu\.(return|terminator|.*_id|.*_dim|num_.*|subgroup_size)|nvvm\.read\.ptx\.sreg\..*|cf\..*"
)
_KINDS = (
    (r"math\.fma|llvm\.intr\.(fma|fmuladd)|vector\.fma|nvvm\.fma.*", "float multiply-add"),
    (r"arith\.(add|sub)f|llvm\.f(add|sub)|nvvm\.(add|sub)\.packed.*", "float add"),
    (r"arith\.mulf|llvm\.fmul|nvvm\.mul\.packed.*", "float multiply"),
    (r"math\.(exp|exp2|log|log2|log10|sin|cos|tan|tanh|sqrt|rsqrt|erf|powf|sincos)|arith\.divf|"
     r"llvm\.fdiv|llvm\.intr\.(exp.*|log.*|sin|cos|sqrt|pow.*)|nvvm\.(ex2|lg2|rcp|rsqrt|sqrt|tanh|"
     r"sin|cos).*", "special function"),
    (r"(arith|math|llvm|nvvm|vector)\..*(f|num|reduction)$|arith\.cmpf|llvm\.fcmp|nvvm\.f(min|max)",
     "float other"),
    (r"arith\.(sitofp|uitofp|fptosi|fptoui|extf|truncf|convertf)|llvm\.(sitofp|uitofp|fptosi|"
     r"fptoui|fpext|fptrunc)|nvvm\.(convert|cvt).*|cute\.convert.*", "conversion"),
    (r"nvvm\.(shfl|vote|match|redux|elect).*|gpu\.(shuffle|ballot|subgroup_reduce)", "warp"),
    (r"gpu\.barrier|nvvm\.barrier.*|nvvm\.bar\..*|nvvm\.cluster\..*", "barrier"),
    (r"nvvm\.mbarrier\..*", "mbarrier"),
    (r"nvvm\.cp\.async\.bulk.*(commit|wait).*|nvvm\.cp\.async\.(commit|wait|mbarrier).*",
     "copy group"),
    (r"nvvm\.cp\.async\.bulk.*", "TMA"),
    (r"nvvm\.wgmma\..*|nvvm\.tcgen05\.(wait|commit|fence).*", "tensor group"),
    (r"nvvm\.tcgen05\.mma.*|nvvm\.mma.*|cute\.ptx_wgmma", "tensor core"),
    (r"nvvm\.tcgen05\..*|cute\.tmem.*", "tensor memory"),
    (r"scf\.(if|for|while)", "branch"),
    (r"gpu\.printf|llvm\.call", "print"),
    (r"nvvm\.(fence|membar|memory).*|llvm\.fence", "fence"),
    (r"llvm\.inline_asm", "inline PTX"),
    (r"cute\..*", "other"),
    (r"arith\..*|llvm\..*|math\..*|nvvm\..*", "integer"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), kind) for pattern, kind in _KINDS)
_MMA_SHAPE = re.compile(r"m = (\d+), n = (\d+), k = (\d+)")
_MMA_TEXT = re.compile(r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)")


def describe(e: Any, op: Op) -> ProfiledOperation | None:
    """The record of `op`; None for what becomes no instruction. `e` is the PythonEmitter
    that translates it.
    """
    if op.name == "llvm.getelementptr":
        moves = any(e.varying(index) for index in op.operands[1:])
        return ProfiledOperation(op, "integer", 1) if moves else None
    memory = _memory(e, op)
    if memory is not None:
        return ProfiledOperation(op, _memory_kind(op, memory), memory.instructions, memory=memory)
    if op.name in ("llvm.load", "llvm.store") or _FREE.fullmatch(op.name):
        return None  # registers
    kind = next((kind for pattern, kind in _COMPILED if pattern.fullmatch(op.name)), "other")
    if kind == "tensor core":
        return _tensor(op)
    if kind == "inline PTX":
        text = op.string("asm_string")
        shape = _MMA_TEXT.search(text)
        if shape is not None:
            m, n, k = map(int, shape.groups())
            return ProfiledOperation(op, "tensor core", 1, 2.0 * m * n * k)
        return ProfiledOperation(op, kind, max(text.count(";"), 1))
    return ProfiledOperation(op, kind, _elements(op))


def _elements(op: Op) -> float:
    """The instructions of an element-wise operation: pairs of 16-bit floats are one."""
    value = next(iter(op.results or op.operands), None)
    if value is None or not isinstance(value.type, VectorType):
        return 1
    element = element_type(value.type)
    pairs = isinstance(element, FloatType) and element.size == 2
    return max(value.type.count / (2 if pairs else 1), 1)


def _tensor(op: Op) -> ProfiledOperation:
    if op.name.startswith("nvvm.tcgen05.mma"):
        return ProfiledOperation(
            op, "tensor core", 1
        )  # by one thread; its descriptor has the shape
    if op.name == "cute.ptx_wgmma":
        k = WGMMA_TYPES[op.string("a_type")].k
        steps = len(op.integers("b_steps")) or 1
        each = 2.0 * 64 * op.integer("n") * k / 4  # of a warp, one of four
        return ProfiledOperation(op, "tensor core", steps, each * steps)
    shape = _MMA_SHAPE.search(op.attributes.get("shape", ""))
    if shape is None:
        return ProfiledOperation(op, "tensor core", 1)
    m, n, k = map(int, shape.groups())
    return ProfiledOperation(op, "tensor core", 1, 2.0 * m * n * k)


def _memory(e: Any, op: Op) -> MemoryReference | None:
    """Return the accesses of `op` to memory by lanes; None if it has none."""
    match op.name:
        case "llvm.load":
            return _plain(e, op, 0, op.results[0].type, False)
        case "llvm.store":
            return _plain(e, op, 1, op.operands[0].type, True)
        case "llvm.atomicrmw" | "llvm.cmpxchg":
            found = _plain(e, op, 0, op.operands[1].type, True)
            if found is not None:
                found.atomic = True
            return found
        case "nvvm.ldmatrix":
            wide = "m = 16, n = 16" in op.attributes["shape"]
            rows = op.integer("num") * (16 if wide else 8)
            return MemoryReference(0, SHARED, 16, 1, False, rows)
        case "nvvm.stmatrix":
            return MemoryReference(0, SHARED, 16, 1, True, 8 * (len(op.operands) - 1))
        case "nvvm.cp.async.shared.global":
            return MemoryReference(1, GLOBAL, op.integer("size"), 1, False)
    return None


def _plain(e: Any, op: Op, operand: int, type_: Any, writes: bool) -> MemoryReference | None:
    pointer = op.operands[operand]
    root = e.uniformity.root(pointer)
    if root is not None and root.local is not None:
        return None  # ptxas keeps local arrays in registers, or reports the bytes of its stack
    assert isinstance(pointer.type, PtrType)
    space = pointer.type.space
    if space == 0 and root is not None:
        space = root.space
    size = max(type_.size, 1)
    piece = min(op.integer("alignment", 0) or type_.align, WIDEST, size)
    return MemoryReference(operand, space, piece, -(-size // piece), writes)


def _memory_kind(op: Op, memory: MemoryReference) -> str:
    if memory.rows:
        return "matrix store" if memory.writes else "matrix load"
    if op.name == "nvvm.cp.async.shared.global":
        return "asynchronous copy"
    verb = "atomic" if memory.atomic else "store" if memory.writes else "load"
    return f"{SPACES.get(memory.space, 'generic')} {verb}"
