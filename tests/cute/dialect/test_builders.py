"""Builders make what the documentation of each op shows, and verify."""

from __future__ import annotations

import pytest

from basedsl.errors import DSLTypeError
from basedsl.testing import filecheck


@pytest.fixture
def kernel(cute):
    """A function to build in: its arguments %arg0 (gmem), %arg1 (i32), %arg2 (i1)."""
    ir = cute.ir
    module = ir.Module.parse(
        'func.func @f(%m: !cute.memref<f32, "gmem align<16>", "(?):(1)">, %i: i32, %p: i1) {'
        "\n return \n}"
    )
    block = module.body.operations[0].regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        yield module, block.arguments


def test_memory(cute, kernel):
    module, (m, i, p) = kernel
    f32 = cute.ir.F32Type.get()
    x = cute.load_value(m, i, cache="cs")
    v = cute.load_value(m, i, cute.ir.VectorType.get([4], f32), alignment=16)
    cute.store_value(x, m, i, volatile=True)
    smem = cute.alloc_smem(cute.memref_type(f32, "smem", "(4):(1)", 16), 16, name="tile")
    rmem = cute.alloc_rmem(cute.memref_type(f32, "rmem", "(4):(1)", 16), 16)
    dynamic = cute.dynamic_smem(cute.memref_type(f32, "smem", "(?):(1)", 1024))
    cute.store_value(v, dynamic, i, alignment=16)
    cute.copy(m, rmem, bits=128)
    cute.copy(m, smem, atom="cp_async", bits=128, predicate=p, cache="cg")
    cute.gemm(rmem, rmem, rmem, rmem, atom="universal_fma")
    cute.atomic_rmw("add", x, m, i, scope="sys")
    cute.atomic_cas(x, x, m, i, order="acq_rel")
    cute.barrier()
    cute.barrier(1, 64)
    cute.printf("%d\n", [i])
    assert module.operation.verify()
    filecheck(
        str(module),
        """
        // CHECK: "cute.load"(%arg0, %arg1) {cache = "cs"}
        // CHECK: "cute.load"(%arg0, %arg1) {alignment = 16 : i64} : {{.*}} -> vector<4xf32>
        // CHECK: "cute.store"{{.*}} {volatile}
        // CHECK: "cute.alloc_smem"() {bytes = 16 : i64, name = "tile"}
        // CHECK: "cute.alloc_rmem"() {bytes = 16 : i64}
        // CHECK: "cute.dynamic_smem"() : () -> !cute.memref<f32, "smem align<1024>", "(?):(1)">
        // CHECK: "cute.store"
        // CHECK: "cute.copy"{{.*}} {atom = "universal", bits = 128 : i64}
        // CHECK: "cute.copy"{{.*}}, %arg2) {atom = "cp_async", bits = 128 : i64, cache = "cg"}
        // CHECK: "cute.gemm"{{.*}} {atom = "universal_fma"}
        // CHECK: "cute.atomic_rmw"{{.*}} {kind = "add", scope = "sys"}
        // CHECK: "cute.atomic_cas"{{.*}} {order = "acq_rel"}
        // CHECK: "cute.barrier"() : () -> ()
        // CHECK: "cute.barrier"() {count = 64 : i64, id = 1 : i64}
        // CHECK: gpu.printf "%d\\0A", %arg1 : i32
        """,
    )


def test_tensors_from_tensors(cute, kernel):
    module, (m, i, _) = kernel
    f32, f16 = cute.ir.F32Type.get(), cute.ir.F16Type.get()
    row = cute.view(m, i, cute.memref_type(f32, "gmem", "(64):(1)"))
    half = cute.recast(row, cute.memref_type(f16, "gmem", "(128):(1)"))
    address = cute.iterator(half)
    assert str(address.type) == "!llvm.ptr<1>"
    cute.make_memref(address, row.type)
    assert module.operation.verify()


def test_only_tensors_can_be_read(cute, kernel):
    _, (_, i, _) = kernel
    with pytest.raises(DSLTypeError, match="i32 is no tensor"):
        cute.load_value(i, i)


def test_fields_by_name(cute, kernel):
    _, (m, i, p) = kernel
    cute.copy(m, m, bits=32, predicate=p)
    cute.copy(m, m, bits=32)
    x = cute.load_value(m, i)
    ops = [op.operation for op in x.owner.operation.block.operations]
    with_predicate, without, load = (cute.fields(op) for op in ops[:3])
    assert with_predicate.predicate == p
    assert without.predicate is None
    assert (load.memref, load.value) == (m, x)
    assert load.integer("alignment", 4) == 4
    with pytest.raises(AttributeError):
        _ = load.nothing
