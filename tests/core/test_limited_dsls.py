"""DSLs that lack what most have: constructs, dialects, `func.func`."""

import re

import pytest

from basedsl import DSL, DSLSyntaxError, Language, Pipeline, Step, current_trace, range_constexpr
from basedsl.location import Span
from basedsl.objectstage.failure import spans_of_text


class BranchesOnly:
    """An emitter without loops and assertions."""

    checks = False

    def __init__(self, trace):
        self.trace = trace

    def if_(self, condition, then, orelse, merge, loc):
        outcomes = then(), orelse()
        a, b = (list(side()) for side in merge(*outcomes))
        return [
            self.trace.emit_op("own.mux", x.type, condition, x, y)
            for x, y in zip(a, b, strict=True)
        ]


class Muxes(Language):
    """Operations of a dialect that no bindings know, functions of its own, no `func` at all."""

    name = "muxes"
    dialects = ()
    allow_unregistered_dialects = True

    def emitter(self, trace):
        return BranchesOnly(trace)

    def new_function(self, trace, symbol, types):
        ir = trace.ir
        op = ir.Operation.create(
            "own.module", attributes={"name": ir.StringAttr.get(symbol)}, regions=1
        )
        op.regions[0].blocks.append(*types)
        return op

    def end_function(self, trace, operation, values):
        trace.ir.Operation.create("own.output", operands=values)

    def pipeline(self, settings):
        return Pipeline("text", (Step("text", lambda op, context: str(op)),))

    def executor(self, stages, symbol, arguments, results, settings):
        return lambda packed: stages.artifact


MUXES = DSL(Muxes())


@MUXES.jit
def largest(a, b):
    c = b
    if a > b:
        c = a
    for _ in range_constexpr(2):
        c = c + 1
    return c


def test_functions_and_operations_of_its_own():
    text = largest(1, 2)
    assert re.search(r'"own.module"\(\) <?\{?.*', text) and "func." not in text
    assert text.count("own.mux") == 1 and '"own.output"(' in text


def test_a_construct_that_it_lacks():
    @MUXES.jit
    def loop(n):
        total = 0
        for i in range(n):
            total += i
        return total

    with pytest.raises(DSLSyntaxError, match="the DSL 'muxes' has no loop of run time") as info:
        loop(3)
    assert "for i in range(n):" in str(info.value)


def test_values_of_tensor_type_in_control_flow():
    class Tensor:
        def __init__(self, value):
            self.value = value

        def ir_value(self):
            return self.value

        def with_ir_value(self, value):
            return Tensor(value)

        def leaf_type(self):
            return str(self.value.type)

        def __add__(self, other):
            trace = current_trace("+")
            return Tensor(trace.emit_op("own.add", self.value.type, self.value, other.value))

    def tensor(number):
        trace = current_trace("tensor")
        return Tensor(trace.emit_op("own.fill", trace.ir.Type.parse("tensor<4xf32>")))

    class Tensors(Muxes):
        name = "tensors"

        def emitter(self, trace):
            return Language.emitter(self, trace)

    @DSL(Tensors()).jit
    def program(n):
        t = tensor(1)
        for i in range(n):
            t = t + t
            if i > 2:
                t = t + tensor(2)
        while n > 0:
            t = t + t
            n = n - 1
        return n

    text = program(3)
    assert "iter_args" in text and "-> (tensor<4xf32>)" in text
    assert re.search(r"scf.while .*tensor<4xf32>", text)


@pytest.mark.parametrize(
    "text, spans",
    [
        ('loc("a.py":3:4)', [Span("a.py", 3, 3)]),
        ('loc("a.py":3:4 to :9)', [Span("a.py", 3, 3, 3, 8)]),
        ("loc(unknown)", []),
        ('loc("-":3:4)', []),
        ('loc("name"("a.py":3:4))', [Span("a.py", 3, 3)]),
        ('loc(fused["a.py":3:4, "b.py":1:1])', [Span("a.py", 3, 3), Span("b.py", 1, 0)]),
        ('loc(callsite("a.py":3:4 at "b.py":1:1))', [Span("a.py", 3, 3), Span("b.py", 1, 0)]),
    ],
)
def test_locations_as_text(text, spans):
    assert spans_of_text(text) == spans


def test_call_sites_as_text_are_callers():
    (span, *_) = spans_of_text('loc(callsite("a.py":3:4 at callsite("b.py":1:1 at "c.py":2:2)))')
    assert [str(one) for one in span.callers] == ["b.py:1", "c.py:2"]
