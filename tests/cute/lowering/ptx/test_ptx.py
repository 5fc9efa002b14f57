"""PTX: that it says what the IR says, and that ptxas takes it for each architecture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from basedsl.errors import DSLError, DSLRuntimeError
from basedsl.objectstage import Step, run_pipeline
from basedsl.objectstage.snapshot import of_artifact
from basedsl.testing import filecheck
from basedsl_cute.dsl.pipelines import KernelOptions, gpu_pipeline
from basedsl_cute.hardware.targets import TARGETS
from basedsl_cute.lowering.kernel_build import kernel_build
from basedsl_cute.lowering.ptx import ptxas

G = '!cute.memref<f32, "gmem align<16>", "(?):(1)">'
F8 = '!cute.memref<f8E4M3FN, "gmem align<16>", "(?):(1)">'
H = '!cute.memref<f16, "gmem align<16>", "(?):(1)">'
D = '!cute.memref<f64, "gmem", "(?):(1)">'

VECTOR_ADD = f"""
   %t = nvvm.read.ptx.sreg.tid.x : i32
   %b = nvvm.read.ptx.sreg.ctaid.x : i32
   %w = nvvm.read.ptx.sreg.ntid.x : i32
   %m = arith.muli %b, %w : i32
   %k = arith.addi %m, %t : i32
   %in = arith.cmpi slt, %k, %i : i32
   scf.if %in {{
     %va = "cute.load"(%a, %k) : ({G}, i32) -> f32
     %vb = "cute.load"(%b2, %k) : ({G}, i32) -> f32
     %s = arith.addf %va, %vb : f32
     "cute.store"(%s, %c, %k) : (f32, {G}, i32) -> ()
   }}"""
VECTOR_ADD_ARGUMENTS = f"%a: {G}, %b2: {G}, %c: {G}, %i: i32"
needs_ptxas = pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")


def test_vector_add(lowering):
    attributes = "attributes {known_block_size = array<i32: 256, 1, 1>}"
    ptx = lowering.ptx(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS, attributes=attributes)
    filecheck(
        ptx,
        """CHECK: .version 8.4
           CHECK: .target sm_90a
           CHECK: .visible .entry k(
           CHECK: .reqntid 256, 1, 1
           CHECK: mul.wide.s32
           CHECK: ld.global.b32
           CHECK: ld.global.b32
           CHECK: add.rn.f32
           CHECK: st.global.b32""",
    )
    assert ".local" not in ptx and "call" not in ptx


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_ptxas_takes_it(lowering, target):
    text = lowering.kernel(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS)
    stages = lowering.stages(text, target)
    assert stages.artifacts["cubin"][:4] == b"\x7fELF"
    assert f".target {target}" in stages.artifacts["ptx"]


@needs_ptxas
def test_resources_are_read(lowering):
    text = lowering.kernel(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS)
    ptx = lowering.stages(text).artifacts["ptx"]
    made = ptxas.assemble(ptx, "sm_90a")
    resources = made.kernels["k"]
    assert 4 < resources.registers < 32 and not resources.spills and resources.stack == 0


def test_resources_of_a_report():
    report = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 2 barriers, 16 bytes cumulative stack size, 2048 bytes smem, 32 bytes cmem[2]
ptxas info    : Compiling entry function 'l' for 'sm_90a'
ptxas info    : Used 12 registers, used 0 barriers
"""  # noqa: E501
    kernels = ptxas.read_report(report)
    assert kernels["k"] == ptxas.PtxasResources(40, 8, 4, 16, 2048, 2, 32)
    assert kernels["k"].spills
    assert kernels["l"] == ptxas.PtxasResources(12)


# Memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "alignment", "instruction"),
    [
        ("vector<4xf32>", 16, "ld.global.v4.b32"),
        ("vector<2xf32>", 8, "ld.global.v2.b32"),
        ("vector<8xf32>", 32, "ld.global.v4.b32"),
    ],
)
def test_vector_accesses_are_wide(lowering, kind, alignment, instruction):
    body = f"""%v = "cute.load"(%g, %i) {{alignment = {alignment}}} : ({G}, i32) -> {kind}
        "cute.store"(%v, %g, %l) {{alignment = {alignment}}} : ({kind}, {G}, i64) -> ()"""
    ptx = lowering.ptx(body)
    assert instruction in ptx and instruction.replace("ld.", "st.") in ptx
    assert "ld.global.b32" not in ptx and ".local" not in ptx


def test_an_unproven_alignment_splits_the_access(lowering):
    body = f"""%v = "cute.load"(%g, %i) {{alignment = 4}} : ({G}, i32) -> vector<4xf32>
        "cute.store"(%v, %g, %l) {{alignment = 4}} : (vector<4xf32>, {G}, i64) -> ()"""
    assert ".v4" not in lowering.ptx(body)


def test_registers_are_not_memory(lowering):
    register = '!cute.memref<f32, "rmem align<16>", "(4):(1)">'
    body = f"""%r = "cute.alloc_rmem"() {{bytes = 16 : i64}} : () -> {register}
        "cute.copy"(%g, %r) {{atom = "universal", bits = 128}} : ({G}, {register}) -> ()
        %c2 = arith.constant 2 : i32
        %e = "cute.load"(%r, %c2) : ({register}, i32) -> f32
        "cute.store"(%e, %g, %i) : (f32, {G}, i32) -> ()"""
    ptx = lowering.ptx(body)
    # Of 16 bytes one element is used, so LLVM loads no more than that.
    assert ".local" not in ptx
    filecheck(ptx, "CHECK: ld.global{{.*}}\nCHECK: st.global.b32")


@needs_ptxas
@pytest.mark.parametrize("cache", ["cs", "cg", "cv", "lu"])
@pytest.mark.parametrize("kind", ["f32", "vector<4xf32>", "vector<2xf32>", "vector<8xf32>"])
def test_cache_operators_of_loads(lowering, cache, kind):
    body = f"""%v = "cute.load"(%g, %i) {{cache = "{cache}"}} : ({G}, i32) -> {kind}
        "cute.store"(%v, %g, %l) : ({kind}, {G}, i64) -> ()"""
    ptx = lowering.stages(lowering.kernel(body)).artifacts["ptx"]
    assert re.search(rf"ld\.global\.{cache}(\.v\d)?\.b(32|64) ", ptx)


@needs_ptxas
@pytest.mark.parametrize("cache", ["cs", "cg", "wb", "wt"])
@pytest.mark.parametrize("kind", ["f16", "vector<2xf16>", "vector<4xf16>", "vector<8xf16>"])
def test_cache_operators_of_stores(lowering, cache, kind):
    body = f"""%v = "cute.load"(%h, %i) : ({H}, i32) -> {kind}
        "cute.store"(%v, %h, %l) {{cache = "{cache}"}} : ({kind}, {H}, i64) -> ()"""
    ptx = lowering.stages(lowering.kernel(body)).artifacts["ptx"]
    assert re.search(rf"st\.global\.{cache}(\.v\d)?\.b(16|32|64) ", ptx)


def test_data_that_no_one_writes(lowering):
    body = f"""%v = "cute.load"(%g, %i) {{cache = "nc"}} : ({G}, i32) -> f32
        "cute.store"(%v, %g, %l) : (f32, {G}, i64) -> ()"""
    assert "ld.global.nc.b32" in lowering.ptx(body)


def test_async_copies(lowering):
    shared = '!cute.memref<f32, "smem align<16>", "(4):(1)">'
    body = f"""%s = "cute.alloc_smem"() {{bytes = 16 : i64}} : () -> {shared}
        "cute.copy"(%g, %s) {{atom = "cp_async", bits = 128}} : ({G}, {shared}) -> ()
        "cute.copy"(%g, %s, %p) {{atom = "cp_async", bits = 32}} : ({G}, {shared}, i1) -> ()
        nvvm.cp.async.commit.group
        nvvm.cp.async.wait.group 0
        "cute.barrier"() : () -> ()"""
    filecheck(
        lowering.ptx(body, "sm_80"),
        """CHECK: .shared .align 16 .b8 k_smem_0[16];
           CHECK: cp.async.cg.shared.global [k_smem_0], [%{{.*}}], 16;
           CHECK: cp.async.ca.shared.global [{{.*}}], [%{{.*}}], 4, !%{{.*}};
           CHECK: cp.async.commit_group;
           CHECK: bar.sync 0;""",
    )


# Numbers -----------------------------------------------------------------------------------------


def test_products_and_sums_of_the_ir_stay_apart(lowering):
    body = f"""%m = arith.mulf %x, %x : f32
        %s = arith.addf %m, %x : f32
        "cute.store"(%s, %g, %i) : (f32, {G}, i32) -> ()"""
    ptx = lowering.ptx(body)
    assert "mul.rn.f32" in ptx and "add.rn.f32" in ptx and "fma" not in ptx


def test_conversions_to_integers_saturate(lowering):
    body = f"""%big = arith.constant 1.0e30 : f32
        %r = arith.fptosi %big : f32 to i32
        %f = arith.sitofp %r : i32 to f32
        "cute.store"(%f, %g, %i) : (f32, {G}, i32) -> ()"""
    # 2**31 as the bits of an f32, folded by LLVM: not poison.
    assert re.search(rf"\b{0x4F000000}\b|0f4F000000", lowering.ptx(body))


@pytest.mark.parametrize("count", [1, 3, 4])
def test_narrow_floats(lowering, count):
    kind = "f8E4M3FN" if count == 1 else f"vector<{count}xf8E4M3FN>"
    wide = kind.replace("f8E4M3FN", "f32")
    body = f"""%v = "cute.load"(%f8, %i) {{alignment = 1}} : ({F8}, i32) -> {kind}
        %w = arith.extf %v : {kind} to {wide}
        %s = arith.addf %w, %w : {wide}
        %nn = arith.truncf %s : {wide} to {kind}
        "cute.store"(%nn, %f8, %l) {{alignment = 1}} : ({kind}, {F8}, i64) -> ()"""
    ptx = lowering.ptx(body, "sm_89")
    assert "cvt.rn.f16x2.e4m3x2" in ptx
    assert ptx.count("cvt.rn.satfinite.e4m3x2.f32") == {1: 1, 3: 3, 4: 2}[count]


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("f8E4M3FN", "1.5", 0x3C),
        ("f8E4M3FN", "-0.0", 128),
        ("vector<4xf8E4M3FN>", "dense<1.0>", 0x38383838),
    ],
)
def test_narrow_constants(lowering, kind, value, stored):
    """The bits of a number that the format has: 1.5 is 0.0111.100."""
    body = f"""%v = arith.constant {value} : {kind}
        "cute.store"(%v, %f8, %i) {{alignment = 4}} : ({kind}, {F8}, i32) -> ()"""
    assert re.search(rf"\b{stored}\b|\s{stored}[;,]", lowering.ptx(body))


def test_narrow_floats_through_control_flow(lowering):
    body = f"""%v = "cute.load"(%f8, %i) : ({F8}, i32) -> f8E4M3FN
        %w = scf.if %p -> (f8E4M3FN) {{ scf.yield %v : f8E4M3FN }} else {{
          %oo = "cute.load"(%f8, %l) : ({F8}, i64) -> f8E4M3FN
          scf.yield %oo : f8E4M3FN }}
        %h1 = arith.extf %w : f8E4M3FN to f16
        "cute.store"(%h1, %h, %i) : (f16, {H}, i32) -> ()"""
    assert "cvt.rn.f16x2.e4m3x2" in lowering.ptx(body)


@pytest.mark.parametrize("kind", ["f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f6E3M2FN", "f4E2M1FN"])
def test_narrow_floats_without_an_instruction(lowering, kind):
    """Integer arithmetic does it."""
    body = f"""%s = arith.truncf %x : f32 to {kind}
        %w = arith.extf %s : {kind} to f32
        "cute.store"(%w, %g, %i) : (f32, {G}, i32) -> ()"""
    ptx = lowering.ptx(body, "sm_80")
    assert "cvt.rn.satfinite" not in ptx and "min.u32" in ptx
    assert ("cvt.rn.satfinite" in lowering.ptx(body, "sm_90a")) == (kind in ("f8E4M3FN", "f8E5M2"))


def test_tf32(lowering):
    body = f"""%t = arith.truncf %x : f32 to tf32
        %f = arith.extf %t : tf32 to f32
        "cute.store"(%f, %g, %i) : (f32, {G}, i32) -> ()"""
    assert "cvt.rna.tf32.f32" in lowering.ptx(body)


UNARY = (
    "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log "
    "log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh trunc"
).split()
BINARY = ("atan2", "copysign", "powf")


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_all_math_has_code(lowering, kind):
    # One kernel for all of them: linking libdevice once is most of the time.
    body = [f'%v = "cute.load"(%m, %i) : (!cute.memref<{kind}, "gmem", "(?):(1)">, i32) -> {kind}']
    for number, op in enumerate((*UNARY, *BINARY)):
        operands = "%v, %v" if op in BINARY else "%v"
        body.append(f"%r{number} = math.{op} {operands} : {kind}")
        body.append(
            f'"cute.store"(%r{number}, %m, %k{number}) : '
            f'({kind}, !cute.memref<{kind}, "gmem", "(?):(1)">, i32) -> ()'
        )
        body.insert(0, f"%k{number} = arith.constant {number} : i32")
    arguments = f'%m: !cute.memref<{kind}, "gmem", "(?):(1)">, %i: i32'
    ptx = lowering.ptx("\n".join(body), arguments=arguments)
    assert "__nv_" not in re.sub(r"__nv_\w*trig_reduction\w*|__internal\w*", "", ptx)


@pytest.mark.parametrize(
    ("op", "instruction"),
    [
        ("exp", "ex2.approx.ftz.f32"),
        ("exp2", "ex2.approx.ftz.f32"),
        ("log", "lg2.approx.f32"),
        ("log2", "lg2.approx.f32"),
        ("sin", "sin.approx.f32"),
        ("cos", "cos.approx.f32"),
        ("tanh", "tanh.approx.f32"),
        ("sqrt", "sqrt.approx.f32"),
    ],
)
@pytest.mark.parametrize("kind", ["f32", "f16", "vector<2xf32>"])
def test_fast_math_is_an_instruction(lowering, op, instruction, kind):
    element = kind.removeprefix("vector<2x").removesuffix(">")
    memref = f'!cute.memref<{element}, "gmem", "(?):(1)">'
    body = f"""%v = "cute.load"(%m, %i) : ({memref}, i32) -> {kind}
        %r = math.{op} %v fastmath<afn> : {kind}
        "cute.store"(%r, %m, %i) : ({kind}, {memref}, i32) -> ()"""
    if (op, kind) == ("sqrt", "f16"):
        instruction = "sqrt.rn.f32"
    ptx = lowering.ptx(body, arguments=f"%m: {memref}, %i: i32")
    assert instruction in ptx and "call" not in ptx


def test_classification_and_bits(lowering):
    body = f"""%a = math.isnan %x : f32
        %b = math.isinf %x : f32
        %c = math.isfinite %x : f32
        %d1 = arith.ori %a, %b : i1
        %e = arith.xori %d1, %c : i1
        %q = math.ctpop %i : i32
        %r = math.ctlz %q : i32
        %s = math.cttz %r : i32
        %t = math.absi %s : i32
        %u = arith.extui %e : i1 to i32
        %v = arith.addi %t, %u : i32
        %f = arith.sitofp %v : i32 to f32
        "cute.store"(%f, %g, %i) : (f32, {G}, i32) -> ()"""
    ptx = lowering.ptx(body)
    assert "popc.b32" in ptx and "clz.b32" in ptx and "__nv" not in ptx


def test_multidimensional_vectors(lowering):
    body = f"""%v = "cute.load"(%g, %i) {{alignment = 16}} : ({G}, i32) -> vector<4xf32>
        %m = vector.shape_cast %v : vector<4xf32> to vector<2x2xf32>
        %s = arith.addf %m, %m : vector<2x2xf32>
        %w = vector.shape_cast %s : vector<2x2xf32> to vector<4xf32>
        "cute.store"(%w, %g, %l) {{alignment = 16}} : (vector<4xf32>, {G}, i64) -> ()"""
    assert "st.global.v4.b32" in lowering.ptx(body)


@pytest.mark.parametrize(
    ("hint", "stores"), [("disable = true", 1), ("count = 2 : i32", 2), ("full = true", 8), ("", 8)]
)
def test_loops_are_unrolled_as_asked(lowering, hint, stores):
    note = f"{{loop_annotation = #llvm.loop_annotation<unroll = <{hint}>>}}" if hint else ""
    body = f"""%first = arith.constant 0 : i32
        %step = arith.constant 1 : i32
        %end = arith.constant 8 : i32
        scf.for %k = %first to %end step %step : i32 {{
          "cute.store"(%x, %g, %k) {{volatile}} : (f32, {G}, i32) -> ()
        }} {note}"""
    assert lowering.ptx(body).count("st.volatile.global.b32") == stores


@needs_ptxas
def test_parameters_by_value(lowering):
    marks = "llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, cute.grid_constant"
    body = f"""%v = llvm.load %t {{alignment = 64 : i64}} : !llvm.ptr -> f32
        "cute.store"(%v, %g, %i) : (f32, {G}, i32) -> ()"""
    arguments = f"%t: !llvm.ptr {{{marks}}}, %g: {G}, %i: i32"
    stages = lowering.stages(lowering.kernel(body, arguments=arguments))
    ptx = stages.artifacts["ptx"]
    assert ".param .align 64 .b8 k_param_0[128]" in ptx
    assert re.search(r"ld\.param(::entry)?\.b32 .*\[k_param_0\]", ptx)
    assert ".local" not in ptx


# Assertions, printing, lines ---------------------------------------------------------------------


def test_assertions_only_on_demand(lowering):
    body = 'cf.assert %p, "i must be small"'
    assert "__assertfail" not in lowering.ptx(body)
    assert "__assertfail" in lowering.ptx(body, options=KernelOptions(assertions=True))


def test_printing(lowering):
    ptx = lowering.ptx('gpu.printf "%d %f\\n", %i, %x : i32, f32')
    assert "vprintf" in ptx and "cvt.f64.f32" in ptx


@needs_ptxas
def test_lines_reach_the_machine_code(lowering):
    body = f"""%v = "cute.load"(%g, %i) : ({G}, i32) -> f32 loc("/src/user.py":7:3)
        "cute.store"(%v, %g, %l) : (f32, {G}, i64) -> () loc("/src/user.py":8:3)"""
    options = KernelOptions(line_info=True)
    stages = lowering.stages(lowering.kernel(body), options=options)
    ptx = stages.artifacts["ptx"]
    assert re.search(r"\.loc\s+\d+ 7 3", ptx) and re.search(r"\.loc\s+\d+ 8 3", ptx)
    assert re.search(r'\.file\s+\d+ "/src/user\.py"', ptx)
    assert b"debug_line" in stages.artifacts["cubin"]


@needs_ptxas
def test_what_ptxas_refuses_names_both_lines():
    ptx = """.version 8.3
.target sm_90a
.address_size 64
.file 1 "/src/user.py"
.visible .entry k()
{
	.reg .b32 %r<4>;
	.loc 1 12 5
	add.s32 %r1, %r2, wrong;
	ret;
}
"""
    with pytest.raises(DSLError) as refused:
        ptxas.assemble(ptx, "sm_90a")
    assert "note: line 9 of the PTX: add.s32 %r1, %r2, wrong;" in str(refused.value)
    assert str(refused.value.span) == "/src/user.py:12"


def test_without_ptxas_the_artifact_is_ptx(lowering, monkeypatch):
    monkeypatch.setattr(ptxas, "find_ptxas", lambda: None)
    names = [step.name for step in gpu_pipeline(TARGETS["sm_90a"])]
    assert "ptx" in names
    assert not {"cubin", "resources", "sass"}.intersection(names)
    with pytest.raises(DSLRuntimeError, match="no ptxas"):
        ptxas.assemble("", "sm_90a")


def test_without_libdevice_the_package_is_named(lowering, monkeypatch):
    monkeypatch.setattr(ptxas, "find_libdevice", lambda: None)
    with pytest.raises(DSLRuntimeError, match="libdevice") as missing:
        lowering.ptx(f'%r = math.sin %x : f32\n"cute.store"(%r, %g, %i) : (f32, {G}, i32) -> ()')
    assert "basedsl-cute[cuda]" in missing.value.hint


def test_the_same_kernel_gives_the_same_ptx(lowering):
    text = lowering.kernel(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS)
    assert lowering.stages(text).artifacts["ptx"] == lowering.stages(text).artifacts["ptx"]


@needs_ptxas
def test_ptxas_works_while_other_steps_run(lowering):
    seen = []
    text = lowering.kernel(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS)
    pipeline = gpu_pipeline(TARGETS["sm_90a"])
    look = Step("look", lambda op, context: seen.append(kernel_build(context).ptxas.ptx))
    with lowering.context.entered():
        module = lowering.ir.Module.parse(text)
        stages = run_pipeline(pipeline.before("cubin", look), module, lowering.context)
    assert seen == [stages.artifacts["ptx"]]
    assert stages.artifacts["cubin"][:4] == b"\x7fELF"


@needs_ptxas
def test_ptx_that_an_observer_replaced_is_what_gets_assembled(lowering):
    text = lowering.kernel(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS)

    def rename(name, output):
        return of_artifact(output.data.replace(" k(", " renamed(")) if name == "ptx" else None

    with lowering.context.entered():
        module = lowering.ir.Module.parse(text)
        pipeline = gpu_pipeline(TARGETS["sm_90a"])
        stages = run_pipeline(pipeline, module, lowering.context, observe=rename)
    assert b"renamed" in stages.artifacts["cubin"]


@needs_ptxas
def test_a_process_that_no_one_waits_for_is_ended():
    running = ptxas.start(".version 8.3", "sm_90a")
    process, folder = running._process, running._folder.name
    del running
    assert process.returncode is not None
    assert not Path(folder).exists()
