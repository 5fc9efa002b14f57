"""A function being traced by hand, and running what was traced."""

from __future__ import annotations

import contextlib
import ctypes
from types import SimpleNamespace

import pytest

from basedsl.metastage.scf_emitter import ScfEmitter
from basedsl.objectstage import native, run_pipeline
from basedsl.objectstage.lowering import native_pipeline
from basedsl.tracing import Trace, activate

CTYPES = {"i1": ctypes.c_bool, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "f64": ctypes.c_double}


@pytest.fixture
def build(mlir_context):
    """`with build("i64", "f64") as f:` opens a function f of these parameter types: `f.args`,
    `f.em` (the emitter), `f.loc`, `f.op(name, *operands)`, `f.const(value, type)`,
    `f.done(*results)`, then `f.text()` and `f.run(*values)`.
    """

    @contextlib.contextmanager
    def build(*parameters):
        with mlir_context.entered():
            bindings = mlir_context.bindings
            ir = bindings.ir
            module = ir.Module.create()
            language = SimpleNamespace(name="test")
            trace = Trace(
                language,
                bindings,
                module,
                ScfEmitter,
                default_int=None,
                default_float=None,
                pick=None,
            )
            em = trace.emitter
            types = [ir.Type.parse(p) for p in parameters]
            with ir.InsertionPoint(module.body):
                function = bindings.func.FuncOp("f", (types, []))
            block = function.add_entry_block()
            loc = ir.Location.file("user.py", 7, 3)
            results = []

            def op(name, *operands, result=None, **attributes):
                made = ir.Operation.create(
                    name,
                    results=[] if result == () else [result or operands[0].type],
                    operands=list(operands),
                    attributes=attributes,
                    loc=loc,
                )
                return made.results[0] if len(made.results) else None

            def const(value, kind):
                kind = ir.Type.parse(kind)
                return op("arith.constant", result=kind, value=make_attribute(ir, kind, value))

            def compare(predicate, a, b):
                number = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule"].index(predicate)
                i64 = ir.IntegerType.get_signless(64)
                return op(
                    "arith.cmpi",
                    a,
                    b,
                    result=ir.IntegerType.get_signless(1),
                    predicate=ir.IntegerAttr.get(i64, number),
                )

            def done(*values):
                results.extend(str(v.type) for v in values)
                bindings.func.ReturnOp(list(values))
                kind = ir.FunctionType.get(types, [v.type for v in values])
                function.attributes["function_type"] = ir.TypeAttr.get(kind)

            def text():
                with mlir_context.entered():
                    assert module.operation.verify()
                    return str(module)

            def execute(*values):
                with mlir_context.entered():
                    stages = run_pipeline(native_pipeline(), module, mlir_context)
                code = native.load_object(stages.artifact)
                result = CTYPES[results[0]] if results else None
                return code.function("f", result, *(CTYPES[p] for p in parameters))(*values)

            with activate(trace), trace.insertion(block):
                yield SimpleNamespace(
                    args=list(block.arguments),
                    block=block,
                    compare=compare,
                    const=const,
                    done=done,
                    em=em,
                    ir=ir,
                    loc=loc,
                    module=module,
                    op=op,
                    run=execute,
                    text=text,
                    trace=trace,
                )

    return build


def make_attribute(ir, kind, value):
    if isinstance(value, float):
        return ir.FloatAttr.get(kind, value)
    return ir.IntegerAttr.get(kind, value)
