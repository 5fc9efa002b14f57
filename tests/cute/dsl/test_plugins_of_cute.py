"""Another plugin's architecture, matrix instruction and simulator rule, by the hooks of cute."""

from __future__ import annotations

import types
from dataclasses import dataclass

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError, PluginError, ask_plugins, hookimpl, register_plugin, unregister_plugin
from basedsl_cute import algebra, hookspecs
from basedsl_cute.atoms import MmaOp
from basedsl_cute.dialect.atoms import MMA_ATOMS, MmaAtomRow
from basedsl_cute.hardware.requirements import Requirement
from basedsl_cute.hardware.targets import TARGETS, Target, target_of
from basedsl_cute.lowering.ptx.ptxas import find_ptxas
from basedsl_cute.nvgpu.warp import emit_mma
from basedsl_cute.sim import MissingRuleError
from basedsl_cute.sim.rules import NVIDIA_RULES, never, sim_rules

DOT = "nvvm.dot.accumulate.4way"  # PTX ISA 9.7.1.25, "dp4a"
RULES = sim_rules("dot products")


def dp4a(a, b, c):
    return c + (a.astype(np.int32) * b).sum(axis=0, dtype=np.int32)


@RULES.register(DOT, uniform=never)
def simulate(e, op):
    e.globals["dp4a"] = dp4a
    a, b, c = (e.lanes(x) for x in op.operands)
    e.let(op.results[0], f"dp4a({a}, {b}, {c})")


def lower(b, op):
    """`cute.gemm` of four bytes of A and B: a load of each, the instruction, a store."""
    four, i32 = (b.ir.Type.parse(text) for text in ("vector<4xi8>", "i32"))
    a, x, c = (
        b.emit("llvm.load", [kind], [m]) for kind, m in ((four, op.a), (four, op.b), (i32, op.c))
    )
    signed = b.ir.Attribute.parse("#nvvm.dot_accumulate_type<signed>")
    made = b.emit(DOT, [i32], [a, x, c], {"a_type": signed, "b_type": signed})
    b.emit("llvm.store", [], [made, op.d])


@dataclass(frozen=True)
class Dp4aOp(MmaOp):
    """Four products of bytes and their sum, of one thread."""

    @property
    def dtypes(self):
        return cute.Int32, cute.Int8, cute.Int8, cute.Int32

    def layout(self):
        return algebra.thread_mma(4)

    def issue(self, d, a, b, c):
        emit_mma("dp4a", d, a, b, c)


ATOM = MmaAtomRow("dp4a", ("i32", "i8", "i8", "i32"), Requirement("dp4a", ("sm_75",)), lower)
# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": of 8.7.
ARCHITECTURE = Target("sm_88", 90, 164 << 10, 163 << 10, 48, 16)


def plugin(**answers):
    marked = {name: hookimpl(answer) for name, answer in answers.items()}
    return types.SimpleNamespace(**marked)


@pytest.fixture
def registered(monkeypatch):
    """`registered(name=answer)` registers a plugin with these answers for the test."""
    ask_plugins(hookspecs.basedsl_cute_mma_atoms)  # cute's hooks are known
    made = []

    def register(**answers):
        name = f"dots{len(made)}"
        register_plugin(plugin(**answers), name)
        made.append(name)

    before = dict(TARGETS), dict(MMA_ATOMS)
    yield register
    for name in made:
        unregister_plugin(name)
    for table, kept in zip((TARGETS, MMA_ATOMS), before, strict=True):
        table.clear()
        table.update(kept)


@cute.kernel
def dots_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    tiled = cute.make_tiled_mma(Dp4aOp())
    mma = tiled.get_slice(0)
    ga, gb = cute.local_tile(a, (1, 8), (t, 0)), cute.local_tile(b, (1, 8), (t, 0))
    gc = cute.local_tile(c, (1, 1), (t, 0))
    ra = mma.make_fragment_A(mma.partition_A(ga))
    rb = mma.make_fragment_B(mma.partition_B(gb))
    rc = mma.make_fragment_C(mma.partition_C(gc))
    cute.autovec_copy(mma.partition_A(ga), ra)
    cute.autovec_copy(mma.partition_B(gb), rb)
    rc.fill(0)
    cute.gemm(tiled, rc, ra, rb, rc)
    cute.autovec_copy(rc, mma.partition_C(gc))


@cute.jit
def dots(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    dots_kernel(a, b, c).launch(grid=1, block=32)


def operands():
    rng = np.random.default_rng(20260101)
    a, b = (rng.integers(-128, 128, (32, 8), np.int8) for _ in range(2))
    return a, b, np.zeros((32, 1), np.int32)


def test_matrix_instruction_of_another_plugin_on_the_simulator(sim, registered):
    registered(basedsl_cute_mma_atoms=lambda: [ATOM], basedsl_cute_simulator_rules=lambda: RULES)
    a, b, c = operands()
    dots(a, b, c)
    np.testing.assert_array_equal(c[:, 0], (a.astype(np.int32) * b).sum(axis=1))


def test_matrix_instruction_of_another_plugin_in_ptx(registered):
    registered(basedsl_cute_mma_atoms=lambda: [ATOM])
    text = cute.compile(dots, *operands(), options="--gpu-arch sm_80").stages.text("ptx")
    assert text.count("dp4a.s32.s32") == 2  # K = 8


def test_what_no_plugin_brings(sim, registered):
    with pytest.raises(DSLError, match="no MMA atom 'dp4a'"):
        cute.compile(dots, *operands())
    registered(basedsl_cute_mma_atoms=lambda: [ATOM])
    compiled = cute.compile(dots, *operands())
    with pytest.raises(MissingRuleError, match=DOT):
        compiled(*operands())


def test_rule_of_a_plugin_goes_with_it(sim, registered):
    registered(basedsl_cute_mma_atoms=lambda: [ATOM], basedsl_cute_simulator_rules=lambda: RULES)
    dots(*operands())
    # Asking for what nobody else brings has loaded the rare families, which stay.
    assert DOT not in NVIDIA_RULES and "nvvm.wgmma.fence.aligned" in NVIDIA_RULES


def test_requirement_of_an_atom_counts(registered):
    row = MmaAtomRow("dp4a", ATOM.elements, Requirement("dp4a", ("sm_90a",)), lower)
    registered(basedsl_cute_mma_atoms=lambda: [row])
    with pytest.raises(DSLError, match="sm_80 has no dp4a: only sm_90a has it"):
        cute.compile(dots, *operands(), options="--gpu-arch sm_80")


def test_architecture_of_another_plugin(registered):
    with pytest.raises(DSLError, match="'sm_88' is no target"):
        target_of("sm_88")
    registered(basedsl_cute_architectures=lambda: [ARCHITECTURE])
    assert target_of("sm_88") is ARCHITECTURE

    @cute.kernel
    def twice_kernel(x: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        x[i] = x[i] * 2

    @cute.jit
    def twice(x: cute.Tensor):
        twice_kernel(x).launch(grid=1, block=32)

    compiled = cute.compile(twice, np.zeros(32, np.float32), options="--gpu-arch sm_88")
    assert ".target sm_88" in compiled.stages.text("ptx")
    if find_ptxas() is not None:
        assert compiled.stages.binary("cubin")[:4] == b"\x7fELF"


def test_own_instructions_are_not_replaced(sim, registered):
    wrong = sim_rules("wrong")

    @wrong.register("arith.addi", DOT)
    def nothing(e, op):
        raise AssertionError("not asked")

    kept = NVIDIA_RULES["arith.addi"]
    registered(
        basedsl_cute_mma_atoms=lambda: [ATOM, MmaAtomRow("universal_fma", lower=lower)],
        basedsl_cute_simulator_rules=lambda: RULES,
    )
    registered(basedsl_cute_simulator_rules=lambda: wrong)
    a, b, c = operands()
    dots(a, b, c)
    assert NVIDIA_RULES["arith.addi"] is kept and MMA_ATOMS["universal_fma"].lower is None


@pytest.mark.parametrize(
    ("answer", "ask"),
    [
        ({"basedsl_cute_architectures": lambda: ["sm_88"]}, lambda: target_of("sm_88")),
        (
            {"basedsl_cute_mma_atoms": lambda: [MmaAtomRow("dp4a")]},
            lambda: cute.compile(dots, *operands()),
        ),
    ],
)
def test_answers_of_the_wrong_kind(sim, registered, answer, ask):
    registered(**answer)
    with pytest.raises(DSLError, match=r"a plugin's (architecture|MMA atom) is"):
        ask()


def test_failing_plugin_is_named(registered):
    registered(basedsl_cute_architectures=lambda: 1 / 0)
    with pytest.raises(PluginError, match=r"plugin 'dots0' failed in basedsl_cute_architectures"):
        target_of("sm_88")
