"""Builders and views of operations follow from their declarations."""

from __future__ import annotations

import pytest

from basedsl import i64_attr, operand
from basedsl.errors import DSLTypeError
from basedsl.testing import filecheck
from basedsl_cute.dialect.cute_op import OPS, CuteOp, Value
from basedsl_cute.dialect.ops import (
    AllocRmem,
    AllocSmem,
    AtomicCAS,
    AtomicRMW,
    Barrier,
    Copy,
    DynamicSmem,
    Gemm,
    Load,
    MakeMemRef,
    Recast,
    Store,
    TensorIterator,
    View,
)
from basedsl_cute.dialect.warpgroup import Wgmma


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
    four = cute.ir.VectorType.get([4], f32)
    x = Load(cute, memref=m, index=i, cache="cs").value
    v = Load(cute, memref=m, index=i, type=four, alignment=16).value
    Store(cute, value=x, memref=m, index=i, volatile=True)
    kind = cute.memref_type(f32, "smem", "(4):(1)", 16)
    smem = AllocSmem(cute, type=kind, bytes=16, name="tile").memref
    kind = cute.memref_type(f32, "rmem", "(4):(1)", 16)
    rmem = AllocRmem(cute, type=kind, bytes=16).memref
    dynamic = DynamicSmem(cute, type=cute.memref_type(f32, "smem", "(?):(1)", 1024)).memref
    Store(cute, value=v, memref=dynamic, index=i, alignment=16)
    Copy(cute, source=m, target=rmem, atom="universal", bits=128)
    Copy(cute, source=m, target=smem, atom="cp_async", bits=128, predicate=p, cache="cg")
    Gemm(cute, d=rmem, a=rmem, b=rmem, c=rmem, atom="universal_fma")
    AtomicRMW(cute, kind="add", value=x, memref=m, index=i, scope="sys")
    AtomicCAS(cute, expected=x, value=x, memref=m, index=i, order="acq_rel")
    Barrier(cute)
    Barrier(cute, id=1, count=64)
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
        """,
    )


def test_tensors_from_tensors(cute, kernel):
    module, (m, i, _) = kernel
    f32, f16 = cute.ir.F32Type.get(), cute.ir.F16Type.get()
    kind = cute.memref_type(f32, "gmem", "(64):(1)")
    row = View(cute, source=m, offset=i, type=kind).view
    half = Recast(cute, source=row, type=cute.memref_type(f16, "gmem", "(128):(1)")).view
    address = TensorIterator(cute, source=half).pointer
    assert str(address.type) == "!llvm.ptr<1>"
    MakeMemRef(cute, pointer=address, type=row.type)
    assert module.operation.verify()


def test_only_tensors_can_be_read(cute, kernel):
    _, (_, i, _) = kernel
    with pytest.raises(DSLTypeError, match="i32 is no tensor"):
        Load(cute, memref=i, index=i)


def test_fields_by_name(cute, kernel):
    _, (m, i, p) = kernel
    Copy(cute, source=m, target=m, atom="universal", bits=32, predicate=p)
    Copy(cute, source=m, target=m, atom="universal", bits=32)
    x = Load(cute, memref=m, index=i).value
    ops = [op.operation for op in x.owner.operation.block.operations]
    with_predicate, without, load = (cute.view(op) for op in ops[:3])
    assert type(with_predicate) is Copy and type(load) is Load
    assert with_predicate.predicate == p
    assert without.predicate is None
    assert (with_predicate.bits, with_predicate.atom, with_predicate.cache) == (
        32,
        "universal",
        None,
    )
    assert (load.memref, load.value) == (m, x)
    assert load.alignment is None and load.volatile is False
    with pytest.raises(AttributeError):
        _ = load.nothing


def test_arrays_and_flags_are_python_values(cute, kernel):
    _, (_, i, p) = kernel
    ir = cute.ir
    i64 = ir.IntegerType.get_signless(64)
    d = ir.Operation.create("arith.extsi", results=[i64], operands=[i]).result
    kind = cute.memref_type(ir.F32Type.get(), "rmem", "(4):(1)", 16)
    acc = AllocRmem(cute, type=kind, bytes=16).memref
    types = {"d_type": "f32", "a_type": "f16", "b_type": "f16", "a_major": "k", "b_major": "k"}
    made = Wgmma(
        cute, acc=acc, a=d, b=d, accumulate=p, n=8, a_steps=[0, 2], b_steps=[0, 4], negate_b=True,
        **types,
    )  # fmt: skip
    assert (made.a_steps, made.b_steps, made.n) == ([0, 2], [0, 4], 8)
    assert (made.negate_a, made.negate_b, made.accumulate) == (False, True, p)
    assert made.op.verify()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"memref": 1, "index": 1, "alignmnt": 16}, "an unexpected keyword argument 'alignmnt'"),
        ({"memref": 1, "index": 1, "value": 1}, "an unexpected keyword argument 'value'"),
        ({}, "missing 2 required keyword-only arguments: 'memref' and 'index'"),
        ({"memref": 1}, "missing 1 required keyword-only argument: 'index'"),
    ],
)
def test_a_builder_names_fields_that_are_wrong(cute, kernel, fields, message):
    for _ in range(2):  # the first call generates the builder
        with pytest.raises(TypeError, match=rf"cute\.load\(\) .*{message}"):
            Load(cute, **fields)


def test_a_result_that_follows_from_nothing_needs_a_type(cute, kernel):
    with pytest.raises(TypeError, match=r"cute\.recast\(\) missing 1 .* argument: 'type'"):
        Recast(cute, source=kernel[1][0])


def test_two_declarations_of_one_name():
    with pytest.raises(ValueError, match=r"cute\.load is declared by Load and Other"):

        class Other(CuteOp, name="load"):
            """..."""

    assert OPS["load"] is Load


def test_a_base_of_declarations_is_no_operation():
    before = dict(OPS)

    class Base(CuteOp):
        left: Value = operand()
        size: int = i64_attr()

    class Derived(Base):
        right: Value = operand()

    assert before == OPS
    assert [f.name for f in Derived.operand_fields] == ["left", "right"]
    assert [f.name for f in Base.operand_fields] == ["left"]
