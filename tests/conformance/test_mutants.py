"""The suite finds DSLs that are wrong: each mutant of toy fails a program of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from basedsl import DSL, Pipeline, ScfEmitter, Step, native_pipeline
from basedsl.conformance import Conformance
from basedsl.conformance.compare import check
from basedsl.conformance.features import why_skipped
from basedsl.conformance.fuzz import check_seed
from basedsl.conformance.programs import all_cases
from basedsl_toy.buffer import BufferArgument
from basedsl_toy.dsl import Toy


class LoopOnceTooOften(ScfEmitter):
    def for_(self, start, stop, step, init, body, hints, loc, *, unsigned):
        one = self.trace.emit_op(
            "arith.constant", stop.type, value=self.trace.ir.IntegerAttr.get(stop.type, 1)
        )
        stop = self.trace.emit_op("arith.addi", stop.type, stop, one)
        return super().for_(start, stop, step, init, body, hints, loc, unsigned=unsigned)

    def __init__(self, trace):
        super().__init__(trace)
        self.trace = trace


class SwappedNestedBranches(ScfEmitter):
    depth = 0

    def if_(self, condition, then, orelse, merge, loc):
        def deeper(side):
            def run():
                self.depth += 1
                try:
                    return side()
                finally:
                    self.depth -= 1

            return run

        if self.depth:
            swapped = self._swapped(condition)
            return super().if_(swapped, deeper(then), deeper(orelse), merge, loc)
        return super().if_(condition, deeper(then), deeper(orelse), merge, loc)

    def __init__(self, trace):
        super().__init__(trace)
        self.trace = trace

    def _swapped(self, condition):
        attribute = self.trace.ir.IntegerAttr.get(condition.type, -1)
        true = self.trace.emit_op("arith.constant", condition.type, value=attribute)
        return self.trace.emit_op("arith.xori", condition.type, condition, true)


class CarriedValueLost(ScfEmitter):
    def for_(self, start, stop, step, init, body, hints, loc, *, unsigned):
        found = super().for_(start, stop, step, init, body, hints, loc, unsigned=unsigned)
        return [*found[:-1], init[-1]] if len(found) > 1 else found


class EagerAnd(ScfEmitter):
    """Both sides of branches run, and their values are chosen afterwards."""

    def if_(self, condition, then, orelse, merge, loc):
        outcomes = then(), orelse()
        a, b = (list(side()) for side in merge(*outcomes))
        return [
            self.trace.emit_op("arith.select", x.type, condition, x, y)
            for x, y in zip(a, b, strict=True)
        ]

    def __init__(self, trace):
        super().__init__(trace)
        self.trace = trace


class BodyBeforeTest(ScfEmitter):
    def while_(self, init, test, body, loc):
        _, values = test(list(init))
        return super().while_(body(values), test, body, loc)


class AssertionsIgnored(ScfEmitter):
    def assert_(self, condition, message, loc):
        pass


class MessagesLost(ScfEmitter):
    def assert_(self, condition, message, loc):
        super().assert_(condition, message.partition(":")[0], loc)


def rewriting(old: str, new: str) -> Any:
    """A pipeline that replaces operations (or a predicate) in the module's text."""

    def edit(op: Any, context: Any) -> None:
        ir = context.bindings.ir

        def visit(inner: Any) -> Any:
            if inner.name == old:
                found.append(inner)
            return ir.WalkResult.ADVANCE

        found: list[Any] = []
        op.walk(visit)
        for one in found:
            with ir.InsertionPoint(one), one.location:
                made = ir.Operation.create(
                    new,
                    results=[result.type for result in one.results],
                    operands=list(one.operands),
                    attributes={a.name: a.attr for a in one.attributes} if old == new else None,
                )
                if old == new == "arith.cmpi":
                    i64 = ir.IntegerType.get_signless(64)
                    code = ir.IntegerAttr(one.attributes["predicate"]).value
                    unsigned = {2: 6, 3: 7, 4: 8, 5: 9}.get(code, code)
                    made.attributes["predicate"] = ir.IntegerAttr.get(i64, unsigned)
            for result, other in zip(one.results, made.results, strict=True):
                result.replace_all_uses_with(other)
            one.operation.erase()

    def pipeline(self: Any, settings: Any) -> Pipeline:
        return native_pipeline((Step("mutant", edit),), settings.opt_level)

    return pipeline


def truncating(self: Any, settings: Any) -> Pipeline:
    """A pipeline in which quotients are not corrected towards minus infinity."""

    def edit(op: Any, context: Any) -> None:
        ir = context.bindings.ir

        def visit(inner: Any) -> Any:
            if inner.name == "arith.select":
                quotient = inner.operands[2].owner
                if getattr(quotient, "name", "") == "arith.divsi":
                    inner.results[0].replace_all_uses_with(inner.operands[2])
            return ir.WalkResult.ADVANCE

        op.walk(visit)

    return native_pipeline((Step("mutant", edit),), settings.opt_level)


@dataclass(frozen=True)
class IgnoresTheElementType(BufferArgument):
    dtype: Any = field(compare=False)

    def __str__(self) -> str:
        return "Buffer"  # and does not say so


def of_element_type(self: Any, value: Any, annotation: Any, name: str) -> Any:
    if isinstance(value, np.ndarray):
        made = BufferArgument.of(value, annotation, name)
        return IgnoresTheElementType(made.dtype, made.ndim)
    return None


def emitter(cls: type) -> dict[str, Any]:
    return {"emitter": lambda self, trace: cls(trace), "dialects": (*Toy.dialects, "scf")}


MUTANTS: dict[str, dict[str, Any]] = {
    "loop once too often": emitter(LoopOnceTooOften),
    "floor division": {"pipeline": truncating},
    "swapped nested branches": emitter(SwappedNestedBranches),
    "carried value lost": emitter(CarriedValueLost),
    "unsigned compare": {"pipeline": rewriting("arith.cmpi", "arith.cmpi")},
    "eager and": emitter(EagerAnd),
    "argument types ignore the element type": {"argument_type": of_element_type},
    "body before test": emitter(BodyBeforeTest),
    "assertions ignored": emitter(AssertionsIgnored),
    "messages lost": emitter(MessagesLost),
    "minimum for maximum": {"pipeline": rewriting("arith.maxsi", "arith.minsi")},
    "addition for exclusive or": {"pipeline": rewriting("arith.xori", "arith.ori")},
    "subtraction reversed": {"pipeline": rewriting("arith.subf", "arith.addf")},
}


def first_failure(conformance: Conformance) -> str:
    """The name of the first program, promise or random program that finds something."""
    from basedsl.conformance import test_promises

    try:
        test_promises.test_element_types_do_not_share_code(conformance)
    except Exception:
        return "element types"
    for name, case in all_cases():
        if why_skipped(conformance, name, case) is None and not case.message:
            try:
                check(conformance, case)
            except Exception:
                return name
    return next((f"seed {seed}" for seed in range(40) if check_seed(conformance, seed)), "")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_found(mutant: str) -> None:
    language: Any = type("Mutant", (Toy,), {"name": "mutant", **MUTANTS[mutant]})
    assert first_failure(Conformance("mutant", DSL(language()))) != ""
