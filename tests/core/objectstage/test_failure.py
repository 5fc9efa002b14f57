"""A failing step is told at the user's Python line, in words, with a file that repeats it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import basedsl.location
from basedsl.errors import CompilerBug
from basedsl.location import Span
from basedsl.objectstage import PassFailed, Pipeline, Step, run_pipeline, span_of_location
from basedsl.objectstage.failure import in_plain_words


@pytest.fixture(autouse=True)
def dumps_here(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def user_file(tmp_path):
    path = tmp_path / "user_program.py"
    path.write_text("def f(a, b):\n    c = a + b\n    return c * shape(a)\n")
    return path


def fails(context, text, *steps, **kwargs):
    with context.entered() as live:
        live.allow_unregistered_dialects = True
        try:
            module = context.bindings.ir.Module.parse(text)
        finally:
            live.allow_unregistered_dialects = False
        with pytest.raises(PassFailed) as caught:
            run_pipeline(Pipeline("p", steps), module, context, label="f", **kwargs)
    return caught.value, module


def copysign(user_file):
    return f"""
    func.func @f(%x: f64) -> f64 {{
      %0 = math.copysign %x, %x : f64 loc("{user_file}":2:9)
      return %0 : f64
    }}"""


def test_the_python_line_the_pass_and_plain_words(mlir_context, user_file):
    step = Step("lower", ("canonicalize", "convert-math-to-libm", "cse"))
    error, _ = fails(mlir_context, copysign(user_file), Step("ok", "cse"), step)
    assert error.span == Span(str(user_file), 2, 8, 2, None)
    assert isinstance(error, CompilerBug)
    assert error.step == "lower"
    assert error.failed_pass == "convert-math-to-libm"
    text = str(error)
    assert "step 'lower' of pipeline 'p' (pass convert-math-to-libm)" in text
    assert "the operation math.copysign has no lowering for this target" in text
    assert "c = a + b" in text
    assert "%0" not in text.splitlines()[1], "no IR beside the source line"


def test_outputs_before_the_failure_are_there(mlir_context, user_file):
    step = Step("lower", "convert-math-to-libm")
    error, module = fails(mlir_context, copysign(user_file), Step("ok", "cse"), step)
    assert error.stages.names == ("input", "ok")
    assert "math.copysign" in error.stages.text("ok")
    assert "math.copysign" in str(module), "the input module is not consumed"


def test_the_repro_file_repeats_the_failure(mlir_context, user_file):
    error, _ = fails(mlir_context, copysign(user_file), Step("lower", "cse,convert-math-to-libm"))
    assert error.dump is not None
    assert str(error.dump) in str(error)
    first, rest = error.dump.read_text().split("\n", 1)
    assert first.startswith("// python -m basedsl opt ")
    assert "--passes convert-math-to-libm" in first
    assert "math.copysign" in rest
    command = first.removeprefix("// python ").split()
    again = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=60
    )
    assert again.returncode == 1, again
    assert "math.copysign has no lowering" in again.stderr


def test_no_repro_file_where_none_can_be_written(mlir_context, user_file, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    error, _ = fails(mlir_context, copysign(user_file), Step("lower", "convert-math-to-libm"))
    assert error.dump is None
    assert "no lowering" in str(error)


def test_a_module_that_is_wrong_from_the_start(mlir_context, user_file):
    with mlir_context.entered():
        ir = mlir_context.bindings.ir
        module = ir.Module.parse("func.func @f(%x: f32) { return }")
        block = module.body.operations[0].regions[0].blocks[0]
        location = ir.Location.file(str(user_file), 2, 9)
        with ir.InsertionPoint.at_block_begin(block), location:
            ir.Operation.create(
                "arith.addf", results=[ir.F64Type.get()], operands=[block.arguments[0]] * 2
            )
        with pytest.raises(PassFailed, match="module that tracing built is not valid") as caught:
            run_pipeline(Pipeline("p"), module, mlir_context)
    assert caught.value.span == Span(str(user_file), 2, 8, 2, None)
    assert "requires the same type for all operands and results" in str(caught.value)
    assert "arith.addf" in caught.value.dump.read_text()


def test_a_python_pass_that_leaves_a_wrong_module(mlir_context):
    def spoil(op, context):
        block = op.regions[0].blocks[0].operations[0].regions[0].blocks[0]
        block.operations[len(block.operations) - 1].operation.erase()

    error, _ = fails(mlir_context, "func.func @f() { return }", Step("spoil", spoil))
    assert "the module that this step left is not valid" in error.message
    assert error.step == "spoil"


def test_an_mlir_error_inside_a_python_pass_is_mapped(mlir_context, user_file):
    def lower(op, context):
        manager = context.bindings.passmanager.PassManager.parse(
            "builtin.module(convert-math-to-libm)"
        )
        manager.run(op)

    error, _ = fails(mlir_context, copysign(user_file), Step("own", lower))
    assert error.span is not None
    assert error.span.line == 2


def test_unregistered_operations_in_plain_words(mlir_context):
    text = 'func.func @f() { "foo.bar"() : () -> () return }'
    error, _ = fails(mlir_context, text, Step("s", "cse"))
    assert "the operation foo.bar belongs to a dialect that is not loaded" in str(error)


def test_in_plain_words_leaves_the_unknown_alone():
    assert in_plain_words("something else") == "something else"
    assert re.match(
        r"a value is used outside the loop", in_plain_words("operand #1 does not dominate this use")
    )


def test_locations_of_all_kinds(mlir_context, user_file):
    ir = mlir_context.bindings.ir
    inside = basedsl.location.__file__
    with mlir_context.entered():
        user = ir.Location.file(str(user_file), 3, 5)
        internal = ir.Location.file(inside, 10, 1)
        span = Span(str(user_file), 3, 4, 3, None)
        assert span_of_location(user) == span
        assert span_of_location(ir.Location.name("x", user)) == span
        assert span_of_location(ir.Location.fused([internal, user])) == span
        assert span_of_location(ir.Location.callsite(internal, [user])) == span
        assert span_of_location(internal).filename == inside
        assert span_of_location(ir.Location.unknown()) is None
        ranged = ir.Location.file(str(user_file), 3, 5, 3, 9)
        assert span_of_location(ranged) == Span(str(user_file), 3, 4, 3, 8)
