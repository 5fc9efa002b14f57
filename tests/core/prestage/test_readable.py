"""The rewritten text, and the differences each pass makes."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from python_runtime import PythonRuntime

from basedsl.prestage import (
    CALLBACKS,
    ControlFlowCallbacks,
    is_compiler_variable,
    is_flag,
    stage_function,
)


def rewrite(tools: Any, text: str, **names: Any) -> str:
    return stage_function(tools.define(dedent(text).lstrip(), **names)).source + "\n"


def test_a_kernel_with_a_guard(tools: Any) -> None:
    text = """
    @decorator
    def f(a: Tensor, b: Tensor, c: Tensor, n: int = 4):
        i = arch.block_idx()[0] * 4
        if i >= n:
            return
        c[i] = a[i] + b[i]
    """
    assert (
        rewrite(tools, text, decorator=lambda f: f, Tensor=1)
        == dedent(
            """
        def f(a: Tensor, b: Tensor, c: Tensor, n: int=4):
            i = arch.block_idx()[0] * 4

            def if_then_4():
                pass

            def if_else_4():
                __dsl__.setitem(__dsl__.getitem(a, i) + __dsl__.getitem(b, i), c, i)
            __dsl__.if_(i >= n, if_then_4, if_else_4, (), ())
        """
        ).lstrip()
    )


def test_branches_and_boolean_operators(tools: Any) -> None:
    text = """
    def f(a, b):
        x = 0
        if a < b and not b or a is None:
            x = 1
        elif 0 < a <= 5:
            x = a if b else -a
        return x
    """
    assert (
        rewrite(tools, text)
        == dedent(
            """
        def f(a, b):
            x = 0

            def if_then_3():
                nonlocal x
                x = 1

            def if_else_3():
                nonlocal x

                def if_then_5():
                    nonlocal x
                    x = __dsl__.ifexp(b, lambda: a, lambda: -a)
                __dsl__.if_(__dsl__.compare(0, ('<', lambda: a), ('<=', lambda: 5)), \
if_then_5, None, ('x',), ('x',))
            __dsl__.if_(__dsl__.any_true(lambda: __dsl__.all_true(lambda: a < b, lambda: \
__dsl__.not_(b)), lambda: a is None), if_then_3, if_else_3, ('x',), ('x',))
            return x
        """
        ).lstrip()
    )


def test_a_loop_with_break_and_else(tools: Any) -> None:
    text = """
    def f(xs, n):
        total = 0
        for i in range(n):
            square = i * i
            if square > 9:
                total = -1
                break
            total += square
        else:
            total *= 2
        return total
    """
    assert (
        rewrite(tools, text)
        == dedent(
            """
        def f(xs, n):
            total = 0
            __brk_3__ = False

            def for_body_3(i):
                nonlocal total, __brk_3__
                square = i * i

                def if_then_5():
                    nonlocal total, __brk_3__
                    total = -1
                    __brk_3__ = True

                def if_else_5():
                    nonlocal total, __brk_3__
                    total += square
                __dsl__.if_(square > 9, if_then_5, if_else_5, ('total', '__brk_3__'), \
('total', '__brk_3__'))
            __dsl__.for_(__dsl__.fn(range)(n), for_body_3, ('total', '__brk_3__'), \
('total', '__brk_3__'), ('__brk_3__',))

            def if_then_3():
                nonlocal total
                total *= 2
            __dsl__.if_(__dsl__.not_(__brk_3__), if_then_3, None, ('total',), ('total',))
            return total
        """
        ).lstrip()
    )


def test_early_returns(tools: Any) -> None:
    text = """
    def f(n):
        if n < 0:
            return 1
        while n > 10:
            n -= 1
            if n == 20:
                return n
        return 0
    """
    assert (
        rewrite(tools, text)
        == dedent(
            """
        def f(n):
            __retval__: ...
            __ret__ = False

            def if_then_2():
                nonlocal __retval__
                __retval__ = 1

            def if_else_2():
                nonlocal n, __retval__, __ret__

                def while_body_4():
                    nonlocal n, __retval__, __ret__
                    n -= 1

                    def if_then_6():
                        nonlocal __retval__, __ret__
                        __retval__ = n
                        __ret__ = True
                    __dsl__.if_(n == 20, if_then_6, None, ('__retval__', '__ret__'), \
('__retval__', '__ret__'))
                __dsl__.while_(lambda: n > 10, while_body_4, ('n', '__retval__', '__ret__'), \
('n', '__retval__', '__ret__'), ('__ret__',))

                def if_then_4():
                    nonlocal __retval__
                    __retval__ = 0
                __dsl__.if_(__dsl__.not_(__ret__), if_then_4, None, ('__retval__',), \
('__retval__',))
            __dsl__.if_(n < 0, if_then_2, if_else_2, ('__retval__',), ('__retval__',))
            return __retval__
        """
        ).lstrip()
    )


def test_what_is_static_stays(tools: Any) -> None:
    text = """
    def f(x, mask=None):
        if mask is None or isinstance(mask, int):
            return x
        for k in (1, 2, 3):
            if 'k' in x:
                break
            x = x + k == 3
        while True:
            x += 1
            if x is not None:
                return x[0], x[-1], x[1:], x[0, 1]
    """
    assert (
        rewrite(tools, text)
        == dedent(
            """
        def f(x, mask=None):
            if mask is None or isinstance(mask, int):
                return x
            for k in (1, 2, 3):
                if 'k' in x:
                    break
                x = x + k == 3
            while True:
                x += 1
                if x is not None:
                    return (x[0], x[-1], x[1:], x[0, 1])
        """
        ).lstrip()
    )


def test_statements_that_stay_python(tools: Any) -> None:
    text = """
    def f(x):
        with x as y, y:
            x = 1
        try:
            x = 2
        except ValueError:
            raise
        match x:
            case 1:
                x[x] += 1
        if x:
            raise KeyError(x) from y
    """
    assert (
        rewrite(tools, text)
        == dedent(
            """
        def f(x):
            with __dsl__.with_(x) as y, __dsl__.with_(y):
                x = 1
            with __dsl__.static_only('try'):
                try:
                    x = 2
                except ValueError:
                    raise
            match x:
                case 1:
                    __item_10__ = __dsl__.getitem(x, x)
                    __item_10__ += 1
                    __dsl__.setitem(__item_10__, x, x)

            def if_then_11():
                __dsl__.raise_(lambda: KeyError(x), lambda: y)
            __dsl__.if_(x, if_then_11, None, (), ())
        """
        ).lstrip()
    )


def test_names_the_user_took(tools: Any) -> None:
    text = """
    def f(n, __ret__=1, if_then_3=2):
        for i in range(n):
            if i == 2: return __ret__ + if_then_3
    """
    found = rewrite(tools, text)
    assert "__ret_2__ = True" in found
    assert "def if_then_3_2():" in found
    tools.check(tools.define(dedent(text)), (1,), (3,))


def test_quotes_in_formatted_strings(tools: Any) -> None:
    text = """
    def f(x):
        if x: y = 1
        return f'''{x["a"]!r:>4} "{y}" {{'{x['b'] or "c"}'}}'''
    """
    source = rewrite(tools, text)
    assert "__dsl__.or_" in source
    compile(source, "<readable>", "exec")
    tools.check(tools.define(dedent(text)), ({"a": 1, "b": 0},), ({"a": 1, "b": "x"},), ({},))


def test_differences_of_each_pass(tools: Any) -> None:
    text = """
    def f(n):
        for i in range(n):
            if i > 3 and n:
                break
    """
    text = dedent(text).lstrip()
    diffs = {diff.name: str(diff) for diff in stage_function(tools.define(text)).diffs}
    assert list(diffs) == ["check", "mangle", "desugar", "exits", "control_flow", "expressions"]
    assert diffs["check"] == diffs["mangle"] == diffs["desugar"] == ""
    assert "-            break\n+            __brk_2__ = True" in diffs["exits"]
    assert "+    def for_body_2(i):" in diffs["control_flow"]
    assert "+        __dsl__.if_(__dsl__.all_true(lambda: i > 3, lambda: n)" in diffs["expressions"]


def test_compiler_variables() -> None:
    assert is_flag("__ret__") and is_flag("__ret_2__") and is_flag("__brk_12__")
    assert not is_flag("__retval__") and not is_flag("ret") and not is_flag("__break__")
    assert is_compiler_variable("__retval__") and is_compiler_variable("__retval_2__")
    assert is_compiler_variable("__cont_3_2__") and not is_compiler_variable("__return__")


def test_the_reference_runtime_implements_the_contract() -> None:
    runtime: ControlFlowCallbacks = PythonRuntime()
    assert all(callable(getattr(runtime, name)) for name in CALLBACKS)
