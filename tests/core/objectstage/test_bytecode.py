"""Reading operation names from bytecode agrees with a walk."""

from __future__ import annotations

import pytest

from basedsl.objectstage import snapshot
from basedsl.objectstage.bytecode import operation_names

MODULES = {
    "empty": "module {}",
    "scalar": "func.func @f(%x: i32) -> i32 { %0 = arith.addi %x, %x : i32 return %0 : i32 }",
    "nested": """
        gpu.module @k { gpu.func @q() kernel { gpu.return } }
        func.func @f(%a: tensor<4xf32>, %i: index, %c: i1) -> f32 {
          %0 = scf.if %c -> f32 {
            %1 = tensor.extract %a[%i] : tensor<4xf32>
            scf.yield %1 : f32
          } else {
            %2 = arith.constant 1.0 : f32
            scf.yield %2 : f32
          }
          return %0 : f32
        }
        llvm.func @external(!llvm.ptr)""",
    "many strings": "\n".join(
        f'func.func @function_{i}() {{ return loc("a{i}.py":{i}:1) }}' for i in range(300)
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_names_agree_with_a_walk(mlir_context, name):
    ir = mlir_context.bindings.ir
    walked = set()

    def visit(op):
        walked.add(op.name)
        return ir.WalkResult.ADVANCE

    with mlir_context.entered():
        module = ir.Module.parse(MODULES[name])
        module.operation.walk(visit)
        data = snapshot.of_operation(module, mlir_context).data
    assert operation_names(data) == walked


@pytest.mark.parametrize("data", [b"", b"ML", b"ML\xefR", b"ML\xefR\x01x\0", b"something else"])
def test_other_data_is_not_read(data):
    assert operation_names(data) is None


def test_torn_bytecode_is_not_read_wrongly(mlir_context):
    with mlir_context.entered():
        module = mlir_context.bindings.ir.Module.parse(MODULES["scalar"])
        data = snapshot.of_operation(module, mlir_context).data
    whole = operation_names(data)
    for size in range(len(data)):
        assert operation_names(data[:size]) in (None, whole)
