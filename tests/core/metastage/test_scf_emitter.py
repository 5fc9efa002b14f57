"""The scf emitter: the IR it makes, what that computes, and cleaning up after exceptions."""

from __future__ import annotations

import pytest

from basedsl.objectstage import asserts, run_pipeline
from basedsl.objectstage.lowering import native_pipeline
from basedsl.testing import filecheck
from basedsl.tracing import LoopHints

NONE = LoopHints()


def test_for_sums_and_multiplies(build):
    with build("i64", "i64", "i64") as f:
        start, stop, step = f.args
        zero, one = f.const(0, "i64"), f.const(1, "i64")

        def body(i, carried):
            total, product = carried
            odd = f.op("arith.ori", i, one)
            return [f.op("arith.addi", total, i), f.op("arith.muli", product, odd)]

        total, product = f.em.for_(
            start, stop, step, [zero, one], body, NONE, f.loc, unsigned=False
        )
        f.done(f.op("arith.addi", total, product))
    filecheck(
        f.text(),
        """
        CHECK:      %[[R:.*]]:2 = scf.for %[[I:.*]] = %arg0 to %arg1 step %arg2
        CHECK-SAME:   iter_args(%[[T:.*]] = %c0_i64, %[[P:.*]] = %c1_i64) -> (i64, i64)  : i64 {
        CHECK:        arith.addi %[[T]], %[[I]] : i64
        CHECK:        scf.yield %{{.*}}, %{{.*}} : i64, i64
        CHECK-NEXT: }
        CHECK-NEXT: arith.addi %[[R]]#0, %[[R]]#1
        """,
    )

    def python(start, stop, step):
        total, product = 0, 1
        for i in range(start, stop, step):
            total, product = total + i, product * (i | 1)
        return total + product

    for values in ((0, 5, 1), (-7, 8, 3), (3, 3, 1), (5, 0, 1)):
        assert f.run(*values) == python(*values)


@pytest.mark.parametrize(("unsigned", "trips"), [(True, 1), (False, 0)])
def test_for_compares_signed_or_unsigned(build, unsigned, trips):
    with build("i32") as f:
        # From 5 to 2**31 in one step: as signed numbers, 2**31 is negative.
        start, stop = f.const(5, "i32"), f.const(-(2**31), "i32")
        zero, one = f.const(0, "i32"), f.const(1, "i32")
        (count,) = f.em.for_(
            start,
            stop,
            f.const(2**31 - 1, "i32"),
            [zero],
            lambda i, c: [f.op("arith.addi", c[0], one)],
            NONE,
            f.loc,
            unsigned=unsigned,
        )
        f.done(count)
    assert ("scf.for unsigned" in f.text()) == unsigned
    assert f.run(0) == trips


def test_for_over_index_and_without_carried_values(build):
    with build() as f:
        zero, one = f.const(0, "index"), f.const(1, "index")
        assert f.em.for_(zero, one, one, [], lambda i, c: [], NONE, f.loc, unsigned=False) == []
        f.done()
    filecheck(f.text(), "CHECK: scf.for %{{.*}} = %c0 to %c1 step %c1 {")


def test_while_is_collatz(build):
    with build("i64") as f:
        one, two, three = (f.const(n, "i64") for n in (1, 2, 3))
        zero = f.const(0, "i64")

        def body(carried):
            n, steps = carried
            even = f.compare("eq", f.op("arith.remsi", n, two), zero)
            (after,) = f.em.if_(
                even,
                lambda: f.op("arith.divsi", n, two),
                lambda: f.op("arith.addi", f.op("arith.muli", n, three), one),
                lambda a, b: [lambda: [a], lambda: [b]],
                f.loc,
            )
            return [after, f.op("arith.addi", steps, one)]

        results = f.em.while_(
            [f.args[0], zero], lambda c: (f.compare("ne", c[0], one), c), body, f.loc
        )
        f.done(results[1])
    filecheck(
        f.text(),
        """
        CHECK:      scf.while (%{{.*}} = %arg0, %{{.*}} = %{{.*}}) : (i64, i64) -> (i64, i64) {
        CHECK:        scf.condition(%{{.*}}) %{{.*}}, %{{.*}} : i64, i64
        CHECK-NEXT: } do {
        CHECK:        scf.if %{{.*}} -> (i64) {
        CHECK:        scf.yield %{{.*}}, %{{.*}} : i64, i64
        """,
    )

    def python(n):
        steps = 0
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    assert [f.run(n) for n in (1, 2, 3, 27)] == [python(n) for n in (1, 2, 3, 27)]


def test_if_yields_what_merge_decides(build):
    with build("i1", "i32", "f64") as f:
        condition, n, x = f.args
        order = []

        def then():
            order.append("then")
            return f.op("arith.addi", n, n)

        def orelse():
            order.append("else")
            return x

        def merge(a, b):
            order.append("merge")
            f64 = x.type

            def widen():
                order.append("widen")
                return [f.op("arith.sitofp", a, result=f64)]

            return [widen, lambda: [b]]

        (result,) = f.em.if_(condition, then, orelse, merge, f.loc)
        f.done(result)
    assert order == ["then", "else", "merge", "widen"]
    filecheck(
        f.text(),
        """
        CHECK:      %[[R:.*]] = scf.if %arg0 -> (f64) {
        CHECK-NEXT:   %[[N:.*]] = arith.addi %arg1, %arg1 : i32
        CHECK-NEXT:   %[[W:.*]] = arith.sitofp %[[N]] : i32 to f64
        CHECK-NEXT:   scf.yield %[[W]] : f64
        CHECK-NEXT: } else {
        CHECK-NEXT:   scf.yield %arg2 : f64
        CHECK-NEXT: }
        CHECK-NEXT: return %[[R]] : f64
        CHECK-NOT:  scf.if
        """,
    )
    assert f.run(True, 4, 0.5) == 8.0
    assert f.run(False, 4, 0.5) == 0.5


def test_if_without_results_has_no_empty_else(build):
    nothing = [list, list]
    with build("i1", "i32") as f:
        condition, n = f.args
        assert f.em.if_(condition, lambda: None, lambda: None, lambda a, b: nothing, f.loc) == []
        f.em.if_(
            condition, lambda: None, lambda: f.op("arith.addi", n, n), lambda a, b: nothing, f.loc
        )
        f.done()
    filecheck(
        f.text(),
        """
        CHECK:      scf.if %arg0 {
        CHECK-NEXT: }
        CHECK-NEXT: scf.if %arg0 {
        CHECK-NEXT: } else {
        CHECK-NEXT:   arith.addi
        """,
    )


def test_assert_stops_with_its_message(build):
    with build("i64") as f:
        f.em.assert_(f.compare("sgt", f.args[0], f.const(0, "i64")), 'needs "n" > 0', f.loc)
        f.done(f.args[0])
    filecheck(f.text(), r'CHECK: cf.assert %{{.*}}, "needs \22n\22 > 0"')
    assert f.run(3) == 3
    asserts.raise_failed_assertion()
    f.run(0)
    with pytest.raises(AssertionError, match='needs "n" > 0') as caught:
        asserts.raise_failed_assertion()
    assert (caught.value.span.filename, caught.value.span.line) == ("user.py", 7)


@pytest.mark.parametrize(
    ("hints", "annotation"),
    [
        (LoopHints(unroll=4), "unroll = <count = 4 : i32>"),
        (LoopHints(unroll=1), "unroll = <disable = true>"),
        (LoopHints(unroll=0), "unroll = <disable = true>"),
        (LoopHints(unroll_full=True), "unroll = <full = true>"),
        (LoopHints(vectorize=True), "vectorize = <disable = false>"),
        (LoopHints(), ""),
    ],
)
def test_hints_reach_llvm(build, mlir_context, hints, annotation):
    with build("i64") as f:
        zero, one = f.const(0, "i64"), f.const(1, "i64")
        (total,) = f.em.for_(
            zero,
            f.args[0],
            one,
            [zero],
            lambda i, c: [f.op("arith.xori", f.op("arith.addi", c[0], i), i)],
            hints,
            f.loc,
            unsigned=False,
        )
        f.done(total)
        stages = run_pipeline(native_pipeline().until("llvmir"), f.module, mlir_context)
    attribute = annotation.replace("unroll = <", "loop_unroll<").replace(
        "vectorize = <", "loop_vectorize<"
    )
    assert attribute in f.text()
    metadata = {
        "unroll = <count = 4 : i32>": '"llvm.loop.unroll.count", i32 4',
        "unroll = <disable = true>": '"llvm.loop.unroll.disable"',
        "unroll = <full = true>": '"llvm.loop.unroll.full"',
        "vectorize = <disable = false>": '"llvm.loop.vectorize.enable", i1 true',
    }.get(annotation)
    if metadata is None:
        assert "llvm.loop" not in stages.text("llvmir")
    else:
        assert metadata in stages.text("llvmir")


def test_prefetch_stages_stay_on_the_loop(build):
    with build() as f:
        zero = f.const(0, "index")
        hints = LoopHints(prefetch_stages=3)
        f.em.for_(zero, zero, zero, [], lambda i, c: [], hints, f.loc, unsigned=False)
        f.done()
    assert "basedsl.prefetch_stages = 3 : i64" in f.text()


class Stop(Exception):
    """Raised by callbacks below."""


def raising_calls(f):
    condition, n = f.args

    def boom(*_):
        f.op("arith.addi", n, n)
        raise Stop

    def late(*_):
        raise Stop

    nothing = [list, list]
    return {
        "for": lambda: f.em.for_(n, n, n, [n], boom, NONE, f.loc, unsigned=False),
        "while test": lambda: f.em.while_([n], boom, lambda c: c, f.loc),
        "while body": lambda: f.em.while_([n], lambda c: (condition, c), boom, f.loc),
        "then": lambda: f.em.if_(condition, boom, lambda: 0, lambda a, b: nothing, f.loc),
        "else": lambda: f.em.if_(condition, lambda: 0, boom, lambda a, b: nothing, f.loc),
        "merge": lambda: f.em.if_(condition, lambda: 0, lambda: 0, late, f.loc),
        "merged": lambda: f.em.if_(
            condition, lambda: 0, lambda: 0, lambda a, b: [lambda: [n], late], f.loc
        ),
    }


def test_an_exception_leaves_nothing_behind(build):
    with build("i1", "i64") as f:
        f.op("arith.addi", f.args[1], f.args[1])
        for call in raising_calls(f).values():
            with pytest.raises(Stop):
                call()
        f.op("arith.muli", f.args[1], f.args[1])
        f.done()
    filecheck(
        f.text(),
        """
        CHECK:      func.func @f
        CHECK-NEXT:   arith.addi
        CHECK-NEXT:   arith.muli
        CHECK-NEXT:   return
        """,
    )


def test_branches_that_yield_different_types_are_refused(build):
    with build("i1", "i64") as f:
        condition, n = f.args
        with pytest.raises(TypeError, match="the branches yield different types"):
            f.em.if_(
                condition,
                lambda: None,
                lambda: None,
                lambda a, b: [lambda: [n], lambda: [condition]],
                f.loc,
            )
        f.done()
    assert "scf.if" not in f.text()


def test_nesting_keeps_the_insertion_points_apart(build):
    with build("i64", "i64") as f:
        n, m = f.args
        zero, one = f.const(0, "i64"), f.const(1, "i64")

        def outer(i, c):
            def inner(j, d):
                small = f.compare("slt", j, i)
                return f.em.if_(
                    small,
                    lambda: f.op("arith.addi", d[0], f.op("arith.muli", i, j)),
                    lambda: f.op("arith.subi", d[0], one),
                    lambda a, b: [lambda: [a], lambda: [b]],
                    f.loc,
                )

            return f.em.for_(zero, m, one, c, inner, NONE, f.loc, unsigned=False)

        f.done(*f.em.for_(zero, n, one, [zero], outer, NONE, f.loc, unsigned=False))

    def python(n, m):
        total = 0
        for i in range(n):
            for j in range(m):
                total = total + i * j if j < i else total - 1
        return total

    assert f.run(7, 5) == python(7, 5)


def test_ops_carry_the_location_they_were_given(build):
    with build("i1", "i64") as f:
        condition, n = f.args
        f.em.if_(condition, lambda: 0, lambda: 0, lambda a, b: [lambda: [n], lambda: [n]], f.loc)
        f.em.while_([n], lambda c: (condition, c), lambda c: c, f.loc)
        f.em.for_(n, n, n, [n], lambda i, c: c, NONE, f.loc, unsigned=False)
        f.done()
        text = f.module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
    lines = [line for line in text.splitlines() if "scf." in line and "loc(" in line]
    ends = [line for line in text.splitlines() if line.strip().startswith("} loc(")]
    assert lines
    assert all('"user.py":7:3' in line for line in lines)
    assert sum('"user.py":7:3' in line for line in ends) == 3
