"""The operations that each cute op becomes, at the level that the simulator and the PTX path share."""

# ruff: noqa: E501 - lines of IR

from __future__ import annotations

import pytest

from basedsl.errors import CompilerBug, DSLTypeError
from basedsl.objectstage import RuleTable
from basedsl.testing import filecheck
from basedsl_cute.dialect import OPS
from basedsl_cute.dialect.atoms import COPY_ATOMS
from basedsl_cute.lowering.kernel.rewriter import LoweringRule, Rewriter
from basedsl_cute.lowering.kernel.rules import COPY_LOWERINGS, RULES

G = '!cute.memref<f32, "gmem align<16>", "(?):(1)">'
N = '!cute.memref<i32, "gmem", "(?):(1)">'
D = '!cute.memref<f64, "gmem", "(?):(1)">'
H = '!cute.memref<f16, "gmem align<16>", "(?):(1)">'
O = '!cute.memref<i1, "gmem", "(?):(1)">'
F8 = '!cute.memref<f8E4M3FN, "gmem align<16>", "(?):(1)">'
S = '!cute.memref<f32, "smem align<16>", "(4):(1)">'
R = '!cute.memref<f32, "rmem align<16>", "(4):(1)">'

# op -> kernel body and what must come out of it.
LOWERED = {
    "load": (
        f"""%v = "cute.load"(%g, %i) : ({G}, i32) -> f32
            %w = "cute.load"(%g, %l) {{alignment = 16 : i64}} : ({G}, i64) -> vector<4xf32>
            %c = "cute.load"(%g, %i) {{cache = "nc", volatile}} : ({G}, i32) -> f32""",
        """CHECK: %[[A:.*]] = llvm.getelementptr %arg0[%{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
           CHECK-NEXT: llvm.load %[[A]] {alignment = 4 : i64} : !llvm.ptr<1> -> f32
           CHECK: llvm.getelementptr %arg0[%{{.*}}] : (!llvm.ptr<1>, i64)
           CHECK-NEXT: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
           CHECK: llvm.load volatile %{{.*}} invariant {alignment = 4 : i64}""",
    ),
    "store": (
        f"""%z = arith.constant dense<0.0> : vector<2xf32>
            "cute.store"(%z, %g, %i) {{alignment = 8, cache = "cs"}} : (vector<2xf32>, {G}, i32) -> ()""",
        """CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64, cute.cache = "cs"} : vector<2xf32>, !llvm.ptr<1>""",
    ),
    "atomic_rmw": (
        f"""%a = "cute.atomic_rmw"(%i, %n, %i) {{kind = "umax", scope = "cta"}} : (i32, {N}, i32) -> i32
            %b = "cute.atomic_rmw"(%x, %g, %i) {{kind = "add", order = "acq_rel"}} : (f32, {G}, i32) -> f32""",
        """CHECK: llvm.atomicrmw umax %{{.*}}, %{{.*}} syncscope("block") monotonic {alignment = 4 : i64}
           CHECK: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") acq_rel""",
    ),
    "atomic_cas": (
        f"""%a = "cute.atomic_cas"(%i, %i, %n, %i) {{order = "release"}} : (i32, i32, {N}, i32) -> i32
            %b = "cute.atomic_cas"(%x, %x, %g, %i) {{scope = "sys"}} : (f32, f32, {G}, i32) -> f32
            "cute.store"(%b, %g, %i) : (f32, {G}, i32) -> ()""",
        """CHECK: llvm.cmpxchg %{{.*}} syncscope("device") release monotonic
           CHECK: llvm.extractvalue %{{.*}}[0] : !llvm.struct<(i32, i1)>
           CHECK: arith.bitcast %{{.*}} : f32 to i32
           CHECK: llvm.cmpxchg
           CHECK: %[[OLD:.*]] = llvm.extractvalue
           CHECK: arith.bitcast %[[OLD]] : i32 to f32""",
    ),
    "view": (
        f"""%v = "cute.view"(%g, %l) : ({G}, i64) -> !cute.memref<f32, "gmem", "(4):(1)">
            %r = "cute.load"(%v, %i) : (!cute.memref<f32, "gmem", "(4):(1)">, i32) -> f32""",
        """CHECK: %[[V:.*]] = llvm.getelementptr %arg0[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
           CHECK: llvm.getelementptr %[[V]]""",
    ),
    "recast": (
        f"""%v = "cute.recast"(%g) : ({G}) -> !cute.memref<f16, "gmem", "(8):(1)">
            %r = "cute.load"(%v, %i) : (!cute.memref<f16, "gmem", "(8):(1)">, i32) -> f16""",
        """CHECK: llvm.getelementptr %arg0[%{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16""",
    ),
    "iterator": (
        f"""%p1 = "cute.iterator"(%g) : ({G}) -> !llvm.ptr<1>
            llvm.store %x, %p1 : f32, !llvm.ptr<1>""",
        """CHECK: llvm.store %{{.*}}, %arg0 : f32, !llvm.ptr<1>""",
    ),
    "make_memref": (
        f"""%p1 = "cute.iterator"(%g) : ({G}) -> !llvm.ptr<1>
            %m = "cute.make_memref"(%p1) : (!llvm.ptr<1>) -> {G}
            "cute.store"(%x, %m, %i) : (f32, {G}, i32) -> ()""",
        """CHECK: llvm.getelementptr %arg0""",
    ),
    "alloc_smem": (
        f"""%s = "cute.alloc_smem"() {{bytes = 16 : i64, name = "tile"}} : () -> {S}
            %t = "cute.alloc_smem"() {{bytes = 16 : i64}} : () -> !cute.memref<f32, "smem align<128>", "(4):(1)">
            "cute.store"(%x, %s, %i) : (f32, {S}, i32) -> ()""",
        """CHECK-DAG: llvm.mlir.global internal @k_tile_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<16 x i8>
           CHECK-DAG: llvm.mlir.global internal @k_smem_1() {addr_space = 3 : i32, alignment = 128 : i64}
           CHECK: cute.static_smem_bytes = 144 : i64
           CHECK: %[[S:.*]] = llvm.mlir.addressof @k_tile_0 : !llvm.ptr<3>
           CHECK: llvm.getelementptr %[[S]]""",
    ),
    "dynamic_smem": (
        """%s = "cute.dynamic_smem"() : () -> !cute.memref<f32, "smem align<1024>", "(?):(1)">
           %t = "cute.dynamic_smem"() : () -> !cute.memref<i8, "smem align<1024>", "(?):(1)">""",
        """CHECK: llvm.mlir.global external @cute_dynamic_smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
           CHECK-NOT: llvm.mlir.global
           CHECK: llvm.mlir.addressof @cute_dynamic_smem
           CHECK: llvm.mlir.addressof @cute_dynamic_smem""",
    ),
    "alloc_rmem": (
        f"""scf.if %p {{
              %r = "cute.alloc_rmem"() {{bytes = 16 : i64}} : () -> {R}
              "cute.store"(%x, %r, %i) : (f32, {R}, i32) -> ()
            }}""",
        """CHECK: gpu.func
           CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
           CHECK-NEXT: llvm.alloca %[[ONE]] x !llvm.array<4 x f32> {alignment = 16 : i64} : (i64) -> !llvm.ptr
           CHECK: scf.if""",
    ),
    "copy": (
        f"""%s = "cute.alloc_smem"() {{bytes = 16 : i64}} : () -> {S}
            %r = "cute.alloc_rmem"() {{bytes = 16 : i64}} : () -> {R}
            "cute.copy"(%g, %r) {{atom = "universal", bits = 128, cache = "cg"}} : ({G}, {R}) -> ()
            "cute.copy"(%r, %g, %p) {{atom = "universal", bits = 32}} : ({R}, {G}, i1) -> ()
            "cute.copy"(%g, %s) {{atom = "cp_async", bits = 128}} : ({G}, {S}) -> ()
            "cute.copy"(%g, %s, %p) {{atom = "cp_async", bits = 64, cache = "ca"}} : ({G}, {S}, i1) -> ()""",
        """CHECK: llvm.load %arg0 {alignment = 16 : i64, cute.cache = "cg"} : !llvm.ptr<1> -> vector<4xf32>
           CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
           CHECK: scf.if %{{.*}} {
           CHECK-NEXT: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> f32
           CHECK-NEXT: llvm.store %{{.*}}, %arg0 {alignment = 4 : i64} : f32, !llvm.ptr<1>
           CHECK: nvvm.cp.async.shared.global %{{.*}}, %arg0, 16, cache =  cg
           CHECK: %[[BYTES:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
           CHECK: nvvm.cp.async.shared.global %{{.*}}, %arg0, 8, cache =  ca, %[[BYTES]]""",
    ),
    "gemm": (
        f"""%r = "cute.alloc_rmem"() {{bytes = 16 : i64}} : () -> {R}
            "cute.gemm"(%r, %r, %r, %r) {{atom = "universal_fma"}} : ({R}, {R}, {R}, {R}) -> ()
            "cute.gemm"(%n, %n, %n, %n) {{atom = "universal_fma"}} : ({N}, {N}, {N}, {N}) -> ()""",
        """CHECK: math.fma %{{.*}} : f32
           CHECK: arith.muli
           CHECK: arith.addi""",
    ),
    "barrier": (
        """"cute.barrier"() : () -> ()
           "cute.barrier"() {id = 2 : i64, count = 64 : i64} : () -> ()
           "cute.barrier"() {count = 96 : i64} : () -> ()""",
        """CHECK: nvvm.barrier{{$}}
           CHECK: nvvm.barrier id = %[[ID:.*]] number_of_threads = %{{.*}}
           CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}""",
    ),
    "wgmma": (
        f"""%acc = "cute.alloc_rmem"() {{bytes = 16 : i64}} : () -> {R}
            "cute.wgmma"(%acc, %l, %l) {{n = 8 : i64, d_type = "f32", a_type = "f16",
                b_type = "f16", a_major = "k", b_major = "mn", a_steps = array<i64: 0>, b_steps = array<i64: 0>}}
                : ({R}, i64, i64) -> ()""",
        """CHECK: %[[ACC:.*]] = llvm.alloca
           CHECK: "cute.ptx_wgmma"(%[[ACC]], %{{.*}}, %{{.*}}) {{.*}} : (!llvm.ptr, i64, i64) -> ()""",
    ),
    "ptx_wgmma": (
        """%at = llvm.mlir.zero : !llvm.ptr
           "cute.ptx_wgmma"(%at, %at, %l, %p) {n = 8 : i64, d_type = "f32", a_type = "f16",
               b_type = "f16", a_major = "k", b_major = "k", a_steps = array<i64: 0>, b_steps = array<i64: 0>}
               : (!llvm.ptr, !llvm.ptr, i64, i1) -> ()""",
        """CHECK: "cute.ptx_wgmma"(%{{.*}}) {{.*}} : (!llvm.ptr, !llvm.ptr, i64, i1) -> ()""",
    ),
    "dsmem_store": (
        """%at = llvm.mlir.zero : !llvm.ptr<7>
           "cute.dsmem_store"(%at, %at, %i) : (!llvm.ptr<7>, !llvm.ptr<7>, i32) -> ()""",
        """CHECK: "cute.dsmem_store"(%{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr<7>, !llvm.ptr<7>, i32)""",
    ),
    "tensormap_replace": (
        f"""%at = "cute.iterator"(%g) : ({G}) -> !llvm.ptr<1>
            "cute.tensormap_replace"(%at, %i) {{field = "global_dim", ordinal = 1 : i64}} : (!llvm.ptr<1>, i32) -> ()""",
        """CHECK: "cute.tensormap_replace"(%arg0, %{{.*}}) {field = "global_dim", ordinal = 1 : i64} : (!llvm.ptr<1>, i32)""",
    ),
    "tensormap_release": (
        f"""%at = "cute.iterator"(%g) : ({G}) -> !llvm.ptr<1>
            %scratch = "cute.alloc_smem"() {{bytes = 128 : i64}} : () -> {S}
            %from = "cute.iterator"(%scratch) : ({S}) -> !llvm.ptr<3>
            "cute.tensormap_release"(%at, %from) : (!llvm.ptr<1>, !llvm.ptr<3>) -> ()""",
        """CHECK: %[[S:.*]] = llvm.mlir.addressof
           CHECK: "cute.tensormap_release"(%arg0, %[[S]])""",
    ),
    "launch_response": (
        """%at = llvm.mlir.zero : !llvm.ptr<3>
           %v = "cute.launch_response"(%at) : (!llvm.ptr<3>) -> vector<4xi32>""",
        """CHECK: "cute.launch_response"(%{{.*}}) : (!llvm.ptr<3>) -> vector<4xi32>""",
    ),
    "tmem_load": (
        """%at = llvm.mlir.zero : !llvm.ptr<6>
           %v = "cute.tmem_load"(%at) {shape = "32x32b", repeat = 2 : i64, steps = array<i64: 0>}
               : (!llvm.ptr<6>) -> vector<2xi32>""",
        """CHECK: "cute.tmem_load"(%{{.*}}) {{.*}} : (!llvm.ptr<6>) -> vector<2xi32>""",
    ),
    "tmem_store": (
        """%at = llvm.mlir.zero : !llvm.ptr<6>
           %v = arith.constant dense<0> : vector<2xi32>
           "cute.tmem_store"(%at, %v) {shape = "32x32b", repeat = 2 : i64, steps = array<i64: 0>}
               : (!llvm.ptr<6>, vector<2xi32>) -> ()""",
        """CHECK: "cute.tmem_store"(%{{.*}}, %{{.*}}) {{.*}} : (!llvm.ptr<6>, vector<2xi32>)""",
    ),
}
# Operations that the step `ptx-only` lowers, or that the simulator runs as they are.
PTX_ONLY = (
    "ptx_wgmma", "dsmem_store", "tensormap_replace", "tensormap_release", "tmem_load", "tmem_store",
    "launch_response",
)  # fmt: skip


@pytest.mark.parametrize("name", LOWERED)
def test_lowering(lowering, name):
    body, checks = LOWERED[name]
    text = lowering.lowered(body)
    left = text.replace('cute.cache = "', "")
    # `ptx-only` takes these.
    for kept in PTX_ONLY:
        left = left.replace(f'"cute.{kept}"', "")
    assert "cute.memref" not in text and '"cute.' not in left
    filecheck(text, checks)


def test_every_op_has_a_rule_and_a_test():
    assert set(RULES) == {op.op_name for op in OPS.values()}, "register a rule of each in RULES"
    assert LOWERED.keys() == OPS.keys(), "give LOWERED an example of each operation"
    assert [name for name, rule in RULES.items() if not rule.doc] == [], "give them docstrings"


def test_every_copy_atom_has_a_lowering():
    assert COPY_LOWERINGS.keys() == {name.partition("_x")[0] for name in COPY_ATOMS}


def test_booleans_are_bytes(lowering):
    body = f"""%b = "cute.load"(%o, %i) : ({O}, i32) -> i1
        %v = "cute.load"(%o, %i) : ({O}, i32) -> vector<4xi1>
        "cute.store"(%b, %o, %i) : (i1, {O}, i32) -> ()
        "cute.store"(%v, %o, %i) : (vector<4xi1>, {O}, i32) -> ()"""
    filecheck(
        lowering.lowered(body),
        """CHECK: %[[RAW:.*]] = llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr<1> -> i8
           CHECK: arith.cmpi ne, %[[RAW]], %{{.*}} : i8
           CHECK: arith.cmpi ne, %{{.*}} : vector<4xi8>
           CHECK: arith.extui %{{.*}} : i1 to i8
           CHECK: arith.extui %{{.*}} : vector<4xi1> to vector<4xi8>""",
    )


def test_narrow_floats_are_bytes(lowering):
    body = f"""%b = "cute.load"(%f8, %i) : ({F8}, i32) -> vector<4xf8E4M3FN>
        "cute.store"(%b, %f8, %i) : (vector<4xf8E4M3FN>, {F8}, i32) -> ()"""
    filecheck(
        lowering.lowered(body),
        """CHECK: llvm.load {{.*}} -> vector<4xi8>
           CHECK: arith.bitcast %{{.*}} : vector<4xi8> to vector<4xf8E4M3FN>
           CHECK: arith.bitcast %{{.*}} : vector<4xf8E4M3FN> to vector<4xi8>
           CHECK: llvm.store {{.*}} : vector<4xi8>""",
    )


def test_elements_that_share_bytes_are_refused_at_their_line(lowering):
    five = '!cute.memref<i5, "gmem", "(?):(1)">'
    with pytest.raises(DSLTypeError, match="share bytes"):
        lowering.lowered(
            f'%b = "cute.load"(%m, %i) : ({five}, i32) -> i5', arguments=f"%m: {five}, %i: i32"
        )


def test_elements_of_four_bits_are_halves_of_bytes(lowering):
    four = '!cute.memref<i4, "gmem align<16>", "(?):(1)">'
    text = lowering.lowered(
        f"""%b = "cute.load"(%m, %i) : ({four}, i32) -> i4
            %v = "cute.load"(%m, %i) {{alignment = 4 : i64}} : ({four}, i32) -> vector<8xi4>
            "cute.store"(%b, %m, %i) : (i4, {four}, i32) -> ()""",
        arguments=f"%m: {four}, %i: i32",
    )
    filecheck(
        text,
        """
        CHECK: llvm.load {{.*}} -> i8
        CHECK: arith.trunci %{{.*}} : i16 to i4
        CHECK: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xi8>
        CHECK: vector.bitcast %{{.*}} : vector<4xi8> to vector<8xi4>
        CHECK: llvm.load {{.*}} -> i8
        CHECK: llvm.store %{{.*}} : i8, !llvm.ptr<1>
        """,
    )


def test_atomics_without_an_instruction_are_refused(lowering):
    body = f'%b = "cute.atomic_rmw"(%x, %g, %i) {{kind = "xor"}} : (f32, {G}, i32) -> f32'
    with pytest.raises(DSLTypeError, match="no atomic 'xor' on f32"):
        lowering.lowered(body)


def test_tensors_are_carried_through_control_flow(lowering):
    body = f"""%r = scf.if %p -> ({G}) {{ scf.yield %g : {G} }} else {{
          %v = "cute.view"(%g, %i) : ({G}, i32) -> {G}
          scf.yield %v : {G} }}
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %e = scf.for %k = %c0 to %i step %c1 iter_args(%m = %r) -> ({G}) : i32 {{
          %w = "cute.view"(%m, %k) : ({G}, i32) -> {G}
          scf.yield %w : {G} }}
        %w = scf.while (%m = %e) : ({G}) -> {G} {{ scf.condition(%p) %m : {G} }}
          do {{ ^bb0(%m: {G}): scf.yield %m : {G} }}
        %s = arith.select %p, %w, %g : {G}
        "cute.store"(%x, %s, %i) : (f32, {G}, i32) -> ()"""
    text = lowering.lowered(body)
    assert "memref" not in text
    filecheck(
        text,
        """CHECK: scf.if %{{.*}} -> (!llvm.ptr<1>)
           CHECK: scf.for {{.*}} -> (!llvm.ptr<1>)
           CHECK: scf.while {{.*}} (!llvm.ptr<1>) -> !llvm.ptr<1>
           CHECK: arith.select %{{.*}} : !llvm.ptr<1>""",
    )


def test_much_shared_memory_becomes_dynamic(lowering):
    body = f"""%a = "cute.alloc_smem"() {{bytes = 40000 : i64}} : () -> {S}
        %b = "cute.alloc_smem"() {{bytes = 20000 : i64}} : () -> !cute.memref<f32, "smem align<128>", "(4):(1)">
        %u = "cute.dynamic_smem"() : () -> {S}
        "cute.store"(%x, %a, %i) : (f32, {S}, i32) -> ()
        "cute.store"(%x, %u, %i) : (f32, {S}, i32) -> ()"""
    filecheck(
        lowering.lowered(body),
        """CHECK-NOT: global internal
           CHECK: llvm.mlir.global external @cute_dynamic_smem
           CHECK: cute.dynamic_smem_bytes = 60416 : i64
           CHECK: %[[A:.*]] = llvm.mlir.addressof
           CHECK: llvm.getelementptr %{{.*}}[40064] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
           CHECK: %[[U:.*]] = llvm.getelementptr %{{.*}}[60416]
           CHECK: llvm.getelementptr %[[A]][
           CHECK: llvm.getelementptr %[[U]][""",
    )


def test_known_block_size_is_required(lowering):
    attributes = "attributes {known_block_size = array<i32: 128, 1, 1>}"
    text = lowering.lowered("", attributes=attributes)
    assert "nvvm.reqntid = array<i32: 128, 1, 1>" in text and "known_block_size" not in text


def test_a_missing_rule_names_op_target_and_line(lowering):
    ir = lowering.ir
    with lowering.context.entered():
        text = lowering.kernel('"cute.barrier"() : () -> () loc("user.py":7:3)')
        module = ir.Module.parse(text)
        with pytest.raises(CompilerBug) as missing:
            Rewriter(lowering.context.bindings, RuleTable("none", LoweringRule), "sm_42").run(
                module.operation
            )
    assert missing.value.message == "the target 'sm_42' has no rule for cute.barrier"
    assert str(missing.value.span) == "user.py:7"


def test_lowered_ops_keep_their_lines(lowering):
    ir = lowering.ir
    with lowering.context.entered():
        line = 'loc("user.py":7:3)'
        text = f'%v = "cute.load"(%g, %i) : ({G}, i32) -> f32 {line}'
        module = ir.Module.parse(lowering.kernel(text))
        Rewriter(lowering.context.bindings, RULES, "sim").run(module.operation)
        asm = module.operation.get_asm(enable_debug_info=True, pretty_debug_info=True)
    there = [
        row.split("=")[1].split()[0]
        for row in asm.splitlines()
        if " = llvm" in row and "user.py" in row
    ]
    assert there == ["llvm.getelementptr", "llvm.load"]
