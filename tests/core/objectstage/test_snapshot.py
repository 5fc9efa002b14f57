"""Snapshots of modules with types that only a Python-defined dialect knows."""

# Annotations are read by the dialect classes below, so they must not be strings.

from basedsl.mlir import MLIRContext, load_bindings
from basedsl.objectstage import Pipeline, Snapshot, Step, run_pipeline


def test_dynamic_dialects_survive_snapshots():
    bindings = load_bindings()
    ext, ir = bindings.ext, bindings.ir

    class Dialect(ext.Dialect, name="snapshottest"):
        pass

    class Box(Dialect.Type, name="box"):
        inner: ir.TypeAttr
        text: ir.StringAttr

    class Open(Dialect.Operation, name="open"):
        box: ext.Operand[Box]
        value: ext.Result[ir.F32Type]

    context = MLIRContext(bindings, lambda _: Dialect.load())
    text = """
    func.func @f(%b: !snapshottest.box<f32, "(1,2):(3,4)">) -> f32 {
      %0 = "snapshottest.open"(%b) : (!snapshottest.box<f32, "(1,2):(3,4)">) -> f32
      return %0 : f32
    }"""
    with context.entered():
        stages = run_pipeline(Pipeline("p", [Step("cse", "cse")]), ir.Module.parse(text), context)
    for name in stages.names:
        assert '!snapshottest.box<f32, "(1,2):(3,4)">' in stages.text(name)
        assert '"snapshottest.open"' in stages.text(name)


def test_bytes_with_no_context_are_described():
    snapshot = Snapshot(b"1234", "mlir")
    assert snapshot.text() == "<4 bytes of mlir>\n"
    assert repr(snapshot) == "Snapshot(mlir, 4 B)"
