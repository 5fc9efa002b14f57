"""A plugin that breaks its contract gets an error that names it and what it broke."""

from dataclasses import dataclass, field

import pytest

from basedsl import (
    DSL,
    ArgumentType,
    CompilerBug,
    Int64,
    Language,
    Pipeline,
    ScfEmitter,
    Step,
    mlir_type,
    native_steps,
    reject,
)


def compile_error(fn=lambda x: x + 1, args=(1,), **attributes):
    """Compile `fn` with a language that has these attributes; returns the error's text."""
    language = type("Broken", (Language,), {"name": "broken", **attributes})
    with pytest.raises(CompilerBug) as info:
        DSL(language()).jit(fn)(*args)
    said = str(info.value)
    assert "the DSL 'broken' of" in said
    return said


def branching(x):
    y = 0
    if x > 1:
        y = x
    return y


def looping(x):
    total = 0
    for i in range(x):
        total += i
    return total


class TooFew(ScfEmitter):
    def if_(self, *args):
        return super().if_(*args)[:-1]

    def for_(self, *args, **kwargs):
        return super().for_(*args, **kwargs)[:-1]


class ReturnsNone(ScfEmitter):
    def if_(self, *args):
        super().if_(*args)


class PassesTooFew(ScfEmitter):
    def for_(self, start, stop, step, init, body, hints, loc, *, unsigned):
        def shorter(i, values):
            return body(i, list(values)[:-1])

        return super().for_(start, stop, step, init, shorter, hints, loc, unsigned=unsigned)


def test_an_emitter_that_returns_too_few_values():
    said = compile_error(branching, emitter=lambda self, trace: TooFew(trace))
    assert "TooFew.if_ returned 0 values, where 1 are carried" in said
    said = compile_error(looping, emitter=lambda self, trace: TooFew(trace))
    assert "TooFew.for_ or while_ returned 0 values, where 1 are carried" in said


def test_an_emitter_that_returns_none():
    said = compile_error(branching, emitter=lambda self, trace: ReturnsNone(trace))
    assert "ReturnsNone.if_ returned None, where 1 are carried" in said


def test_an_emitter_that_passes_too_few_values():
    said = compile_error(looping, emitter=lambda self, trace: PassesTooFew(trace))
    assert "PassesTooFew.for_ or while_ passed 0 values to a body, where 1 are carried" in said


def test_no_emitter():
    assert "emitter() returned None" in compile_error(emitter=lambda self, trace: None)


def test_a_pipeline_that_is_none():
    said = compile_error(pipeline=lambda self, settings: None)
    assert "pipeline() returned a NoneType, not a Pipeline" in said


def pipeline(*steps):
    return {"pipeline": lambda self, settings: Pipeline("own", steps)}


def test_a_pass_that_returns_a_number():
    said = compile_error(**pipeline(Step("three", lambda op, context: 3), *native_steps()))
    assert "step 'three' of pipeline 'own' returned an int" in said
    assert "please report it to its authors" in said


def test_a_pass_that_raises():
    said = compile_error(**pipeline(Step("broken", lambda op, context: {}["x"])))
    assert "step 'broken' of pipeline 'own' broke: KeyError: 'x'" in said
    assert "please report it to its authors" in said


def walking(act):
    """A pass that calls `act` with each addition, from a walk: the bindings lose its exception."""

    def broken(op, context):
        result = context.bindings.ir.WalkResult.ADVANCE
        op.walk(lambda inner: act(inner) or result if inner.name == "arith.addi" else result)

    return broken


def test_a_pass_that_rejects_in_a_walk():
    def rejecting(inner):
        reject(inner, "no additions")

    language = type("Own", (Language,), {"name": "own", **pipeline(Step("no", walking(rejecting)))})
    with pytest.raises(CompilerBug, match="step 'no' of pipeline 'own': no additions") as info:
        DSL(language()).jit(looping)(3)
    assert info.value.span.filename == __file__ and "report it" not in str(info.value)


def test_a_pass_that_raises_in_a_walk():
    said = compile_error(looping, (3,), **pipeline(Step("broken", walking(lambda inner: {}["x"]))))
    assert "step 'broken' of pipeline 'own' broke: KeyError: 'x'" in said
    assert "Traceback" not in said


def test_a_pass_that_mlir_does_not_have():
    said = compile_error(**pipeline(Step("typo", "canonicalise")))
    assert "step 'typo' of pipeline 'own' is not a pass pipeline of numba_cuda_mlir._mlir" in said


def test_no_artifact():
    said = compile_error(**pipeline(Step("clean", "canonicalize")))
    assert "the pipeline 'own' leaves no artifact, not object code" in said


def test_text_for_an_artifact():
    said = compile_error(**pipeline(Step("print", lambda op, context: str(op))))
    assert "the pipeline 'own' leaves text, not object code" in said


def test_an_executor_that_breaks():
    said = compile_error(executor=lambda self, *args: 1 / 0)
    assert "executor() broke: ZeroDivisionError" in said
    assert "executor() returned a NoneType" in compile_error(executor=lambda self, *args: None)


def test_an_argument_type_that_is_none_of_ours():
    said = compile_error(argument_type=lambda self, value, annotation, name: "i64")
    assert "argument_type() returned a str for 'x'" in said


class Cell:
    __dsl_leaf__ = True

    def __init__(self, number):
        self.number = number


@dataclass(frozen=True)
class CellArgument(ArgumentType):
    """Ignores the element type in comparisons."""

    dtype: type = field(compare=False)

    def ir_types(self, ir):
        return [mlir_type(self.dtype, ir)]

    def proxy(self, values):
        return Cell(self.dtype.from_value(values[0]))

    def pack(self, value):
        return (value.number,)

    def __str__(self):
        return f"Cell[{self.dtype.__name__}]"


def test_an_equality_that_ignores_a_field():
    from basedsl import Float64

    class Cells(Language):
        name = "cells"

        def argument_type(self, value, annotation, name):
            if not isinstance(value, Cell):
                return None
            return CellArgument(Float64 if isinstance(value.number, float) else Int64)

    f = DSL(Cells()).jit(lambda cell: cell.number + cell.number)
    assert f(Cell(2)) == 4
    with pytest.raises(CompilerBug) as info:
        f(Cell(2.5))
    said = str(info.value)
    assert "CellArgument.__eq__ takes Cell[Int64] and Cell[Float64] for equal" in said
    assert "the DSL 'cells' of" in said
