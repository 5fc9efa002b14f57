"""Callbacks are told `names`, `undef_ok`, `exits`, on small functions."""

# The programs below are odd on purpose.
# ruff: noqa: B007, F841
from __future__ import annotations

import re
from typing import Any

import pytest
from python_runtime import PythonRuntime

from basedsl.prestage import stage_function


class Recorder(PythonRuntime):
    """Notes what each construct is told, under the name of its first body."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[str, ...]] = {}

    def note(self, body: Any, names: Any, undef_ok: Any, exits: Any = None) -> None:
        told = [self.text(names), self.text(undef_ok)]
        if exits is not None:
            told.append(self.text(exits))
        self.seen[body.__qualname__.rpartition(".")[2].rstrip("0123456789_")] = tuple(told)

    def text(self, names: Any) -> str:
        return re.sub(r"_\d+__", "__", " ".join(names))

    def if_(self, test, then, orelse, names, undef_ok):  # type: ignore[no-untyped-def]
        self.note(then, names, undef_ok)
        super().if_(test, then, orelse, names, undef_ok)

    def while_(self, test, body, names, undef_ok, exits):  # type: ignore[no-untyped-def]
        self.note(body, names, undef_ok, exits)
        super().while_(test, body, names, undef_ok, exits)

    def for_(self, iterable, body, names, undef_ok, exits):  # type: ignore[no-untyped-def]
        self.note(body, names, undef_ok, exits)
        super().for_(iterable, body, names, undef_ok, exits)

    def and_(self, *operands, names=(), undef_ok=()):  # type: ignore[no-untyped-def]
        if names:
            self.note(operands[1], names, undef_ok)
        return super().and_(*operands, names=names, undef_ok=undef_ok)

    def all_true(self, *operands, names=(), undef_ok=()):  # type: ignore[no-untyped-def]
        if names:
            self.note(operands[1], names, undef_ok)
        return super().all_true(*operands, names=names, undef_ok=undef_ok)


def told(fn: Any, *args: Any) -> dict[str, tuple[str, ...]]:
    recorder = Recorder()
    try:
        stage_function(fn).bind(recorder)(*args)
    except NameError:
        pass
    return recorder.seen


def test_only_what_is_read_later_is_named() -> None:
    def f(n):
        a = b = c = 0
        if n:
            a, b, t = 1, 2, 3
            c = t
            unused = c
        c = 1
        return a, b, c

    assert told(f, 1) == {"if_then": ("a b", "a b")}


def test_bound_in_both_or_in_one_branch() -> None:
    def f(n):
        if n:
            x = 1
            y = 2
        else:
            x = 3
        return x, y

    assert told(f, 1) == {"if_then": ("x y", "x")}


def test_a_path_that_raises_or_returns_does_not_bind() -> None:
    def f(n):
        if n > 5:
            x = 1
        elif n > 3:
            raise ValueError
        else:
            return 0
        return x

    source = stage_function(f).source
    assert "read" not in source  # every read of x is proved
    names = "('__retval__',), ('__retval__',)"
    assert source.count(names) == 2
    assert "raise_" in source


def test_a_loop_carries_what_its_next_turn_reads() -> None:
    def f(n):
        total = 0
        for i in range(n):
            square = i * i
            total += square
            last = square
        return total

    assert told(f, 2) == {"for_body": ("total", "total", "")}


def test_a_variable_read_by_the_next_turn_only() -> None:
    def f(n):
        previous = 0
        for i in range(n):
            print(end=str(previous)[:0])
            previous = i

    assert told(f, 2) == {"for_body": ("previous", "previous", "")}


def test_the_loop_variable_if_it_is_read_later() -> None:
    def f(n):
        for i in range(n):
            pass
        return i

    assert told(f, 2) == {"for_body": ("i", "", "")}


def test_names_of_while() -> None:
    def f(n):
        i = 0
        while i < n:
            i += 1
            j = i
        return i

    assert told(f, 2) == {"while_body": ("i", "i", "")}


def test_while_names_what_its_test_assigns_for_the_body() -> None:
    def f(n):
        while (k := n) > 0:
            n = k - 1

    assert told(f, 2) == {"while_body": ("n k", "n k", "")}


def test_bound_before_break_and_in_else() -> None:
    def f(xs):
        for x in xs:
            if x > 1:
                y = x
                break
        else:
            y = -1
        return y

    assert told(f, [1, 2]) == {
        "for_body": ("y __brk__", "y __brk__", "__brk__"),
        "if_then": ("y", "y"),
    }
    assert "read" not in stage_function(f).source


def test_exits_of_nested_loops() -> None:
    text = """
def f(n):
    for i in range(n):
        for j in range(n):
            if j == 2:
                break
            if j == 5:
                return j
        if i == 1:
            continue
        n += 1
"""
    from linecache import cache

    cache["<exits>"] = (len(text), None, text.splitlines(True), "<exits>")
    space: dict[str, Any] = {}
    exec(compile(text, "<exits>", "exec"), space)
    source = stage_function(space["f"]).source
    assert "('__brk_4__', '__ret__'))" in source
    assert "('__ret__',))" in source
    assert "__cont" not in source  # structure is enough


def test_deleted_names_are_named_and_not_promised() -> None:
    def f(n):
        x = 1
        if n:
            del x
        return x

    assert told(f, 1) == {"if_then": ("x", "")}


def test_variables_of_closures_are_always_named() -> None:
    def f(n):
        x = 0

        def g():
            return x

        if n:
            x = 1
        if n > 1:
            inside = g()
        return 5

    recorder = Recorder()
    stage_function(f).bind(recorder)(1)
    assert recorder.seen["if_then"] == ("", "")  # the second one, which only reads
    assert "('x',), ('x',)" in stage_function(f).source


def test_calls_name_the_variables_that_closures_assign() -> None:
    def f(n):
        x = 0

        def g():
            nonlocal x
            x += 1

        for _ in range(n):
            g()
        return x

    assert told(f, 3) == {"for_body": ("x", "x", "")}


def test_a_nested_function_carries_variables_of_the_outer_one() -> None:
    def f(n):
        x = y = 0

        def set_x():
            nonlocal x
            x += 1

        def g():
            nonlocal y
            for i in range(n):
                y += i
                set_x()

        g()
        return x, y

    assert told(f, 3) == {"for_body": ("y x", "", "")}


def test_walrus_in_an_operand() -> None:
    def f(n):
        value = n and (m := n + 1)
        return value, m

    assert told(f, 3) == {"and_arg": ("m", "")}


def test_walrus_that_is_proved() -> None:
    def f(n):
        if n and (m := n + 1):
            return m
        return 0

    source = stage_function(f).source
    assert "names=('m',), undef_ok=('m',)" in source
    assert "read" not in source


def test_return_values() -> None:
    def f(n):
        if n > 1:
            return 1
        n += 1
        return n

    assert told(f, 2) == {"if_then": ("__retval__",) * 2}


def test_void_returns_need_nothing() -> None:
    def f(n, box):
        if n > 1:
            return
        box.append(n)

    assert told(f, 2, []) == {"if_then": ("", "")}
    assert "__ret" not in stage_function(f).source


@pytest.mark.parametrize("depth", [1, 6])
def test_nesting_does_not_change_what_is_named(depth: int, tools: Any) -> None:
    lines = ["def f(n):", "    s = 0"]
    for level in range(depth):
        lines.append("    " * (level + 1) + f"for i{level} in range(n):")
    lines.append("    " * (depth + 1) + "s += i0")
    lines.append("    return s")
    source = stage_function(tools.define("\n".join(lines) + "\n")).source
    assert source.count("('s',), ('s',), ()") == depth
