"""Random structured programs mean the same as written and as rewritten.

A program is text made from a seed: assignments, branches, loops with `else`, exits at every depth,
`try`, `with`, `del`, `:=`, comprehensions, nested functions, raises. Loops are bounded by fuel.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from python_runtime import PythonRuntime

from basedsl.prestage import stage_function

PROGRAMS = 320
BATCH = 20


class Tick:
    """Bounds the work of a program, and is a context manager that may swallow."""

    def __init__(self, fuel: int) -> None:
        self.fuel = fuel
        self.log: list[Any] = []

    def __call__(self, *values: Any) -> int:
        self.fuel -= 1
        if self.fuel < 0:
            raise TimeoutError("out of fuel")
        self.log.append(values)
        return sum(value for value in values if isinstance(value, int)) % 7

    def __enter__(self) -> int:
        return self(100)

    def __exit__(self, *error: Any) -> None:
        # Which kind of NameError a read gives depends on how the variable is stored.
        kind = error[0]
        self.log.append(kind if kind is None or not issubclass(kind, NameError) else NameError)


class Generator:
    """Writes one random function `f(t, a, b, xs)`."""

    NAMES = ("a", "b", "u", "v", "w", "x", "y")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.budget = 45
        self.functions = 0

    def program(self) -> str:
        lines = ["def f(t, a, b, xs):"]
        self.block(lines, 1, loops=0, final=False, function=0)
        if self.random.random() < 0.7:
            lines.append("    return " + self.pick("a", "a", "(a, b, u, xs)"))
        return "\n".join(lines) + "\n"

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def name(self) -> str:
        # Parameters are always bound; favour them, so that programs run far.
        return self.pick("a", "b", "a", "b", *self.NAMES)

    def atom(self) -> str:
        return self.pick(self.name(), self.name(), str(self.random.randrange(5)), "len(xs)")

    def expr(self, depth: int = 0) -> str:
        if depth > 2:
            return self.atom()
        e = lambda: self.expr(depth + 1)  # noqa: E731
        return self.pick(
            self.atom,
            self.atom,
            lambda: f"({e()} + {e()})",
            lambda: f"({e()} * 3 - {e()})",
            lambda: f"t({e()}, {self.random.randrange(99)})",
            lambda: f"({e()} if {self.test(depth + 1)} else {e()})",
            lambda: f"({e()} {self.pick('and', 'or')} {e()})",
            lambda: f"xs[{e()} % 3]",
            lambda: f"max({e()}, {e()})",
            lambda: f"sum([q + {self.name()} for q in xs if q > {self.atom()}])",
            lambda: f"sum(q * {self.name()} for q in xs)",
            lambda: f"({self.name()} := {e()})",
            lambda: f"(lambda p, q=1: p + q + {self.name()})({e()})",
        )()

    def test(self, depth: int = 0) -> str:
        e = lambda: self.expr(depth + 2)  # noqa: E731
        return self.pick(
            lambda: f"{e()} {self.pick('<', '>', '==', '!=')} {e()}",
            lambda: f"{e()} < {e()} <= {e()}",
            lambda: f"not {e()}",
            lambda: f"t({e()}, {self.random.randrange(99)}) % 2",
            lambda: f"({e()} > 1 and {e()} < 4)",
            lambda: f"({e()} > 3 or ({self.name()} := {e()}) < 4)",
            lambda: f"{self.name()} is None",
            lambda: f"{e()} in xs",
            e,
        )()

    def block(self, lines: list[str], depth: int, loops: int, final: bool, function: int) -> None:
        pad = "    " * depth
        start = len(lines)
        for _ in range(self.random.randrange(1, 5)):
            self.budget -= 1
            if self.budget < 0 and len(lines) > start:
                break
            self.statement(lines, depth, loops, final, function)
        if len(lines) == start:
            lines.append(pad + "pass")

    def statement(
        self, lines: list[str], depth: int, loops: int, final: bool, function: int
    ) -> None:
        pad = "    " * depth
        simple = depth > 5 or self.budget < 0 or self.random.random() < 0.45
        if simple:
            lines.append(pad + self.simple(loops, final, depth))
            return
        kind = self.pick("if", "if", "if", "for", "for", "while", "try", "with", "def", "match")

        def inner(loops: int = loops, final: bool = final) -> None:
            self.block(lines, depth + 1, loops, final, function)

        if kind == "if":
            lines.append(f"{pad}if {self.test()}:")
            inner()
            while self.random.random() < 0.25:
                lines.append(f"{pad}elif {self.test()}:")
                inner()
            if self.random.random() < 0.5:
                lines.append(f"{pad}else:")
                inner()
        elif kind == "for":
            target = self.pick(self.name(), self.name(), f"{self.name()}, {self.name()}")
            source = self.pick("xs", f"range({self.expr(1)} % 4)", "(1, 2)", "iter(xs)")
            if "," in target:
                source = self.pick("enumerate(xs)", "zip(xs, xs[1:])")
            lines.append(f"{pad}for {target} in {source}:")
            inner(loops + 1)
            if self.random.random() < 0.3:
                lines.append(f"{pad}else:")
                inner()
        elif kind == "while":
            test = self.pick(self.test(), self.test(), "True")
            lines.append(f"{pad}while {test}:")
            lines.append(f"{pad}    t({self.name()})")
            inner(loops + 1)
            if self.random.random() < 0.3:
                lines.append(f"{pad}else:")
                inner()
        elif kind == "with":
            lines.append(f"{pad}with t{self.pick('', ' as ' + self.name())}:")
            inner()
        elif kind == "try":
            lines.append(f"{pad}try:")
            inner()
            handled = self.random.random() < 0.8
            if handled:
                lines.append(
                    f"{pad}except {self.pick('NameError', 'ValueError as y', 'TypeError as e')}:"
                )
                inner()
                if self.random.random() < 0.3:
                    lines.append(f"{pad}else:")
                    inner()
            if not handled or self.random.random() < 0.3:
                lines.append(f"{pad}finally:")
                self.block(lines, depth + 1, 0, True, function)
        elif kind == "match":
            lines.append(f"{pad}match {self.expr(2)}:")
            lines.append(f"{pad}    case 1:")
            self.block(lines, depth + 2, loops, final, function)
            lines.append(f"{pad}    case {self.name()} if {self.test(1)}:")
            self.block(lines, depth + 2, loops, final, function)
        else:
            self.functions += 1
            name = f"g{self.functions}"
            lines.append(f"{pad}def {name}(p, u=1):")
            if self.random.random() < 0.5:
                lines.append(f"{pad}    nonlocal {self.pick('a', 'b')}")
            self.block(lines, depth + 1, 0, False, function + 1)
            lines.append(f"{pad}{self.pick('a', 'x')} = {name}({self.expr(1)})")

    def simple(self, loops: int, final: bool, depth: int) -> str:
        choices = [
            lambda: f"{self.name()} = {self.expr()}",
            lambda: f"{self.name()} = {self.expr()}",
            lambda: f"{self.name()} {self.pick('+=', '-=')} {self.expr(1)}",
            lambda: f"{self.name()}, {self.name()} = {self.name()}, {self.expr(1)}",
            lambda: f"xs[{self.expr(1)} % 3] {self.pick('=', '+=')} {self.expr(1)}",
            lambda: f"xs[{self.name()} % 3], {self.name()} = {self.name()}, xs[0]",
            lambda: f"t({self.expr(1)})",
        ]
        if self.random.random() < 0.2:
            choices = [
                lambda: f"del {self.pick('u', 'v', 'w', 'x')}",
                lambda: f"assert {self.test(1)}, {self.expr(1)}",
                lambda: f"raise {self.pick('ValueError', 'TypeError')}({self.atom()})",
            ]
        if not final and depth > 1 and self.random.random() < 0.35:
            choices = [lambda: f"return {self.expr(1)}", lambda: "return"]
            if loops:
                choices += [lambda: "break", lambda: "continue"] * 2
        text: str = self.pick(*choices)()
        return text


def run(fn: Any, tools: Any, a: int, b: int, xs: list[int]) -> Any:
    tick = Tick(300)
    xs = list(xs)
    return tools.outcome(fn, tick, a, b, xs), xs, tick.log


@pytest.mark.parametrize("start", range(0, PROGRAMS, BATCH))
def test_random_programs(start: int, tools: Any) -> None:
    for seed in range(start, start + BATCH):
        text = Generator(seed).program()
        try:
            fn = tools.define(text)
        except SyntaxError:
            continue  # a name both a parameter and nonlocal, and the like
        staged = stage_function(fn)
        for runtime in (PythonRuntime(), tools.StrictRuntime()):
            new = staged.bind(runtime)
            for a, b, xs in [(0, 1, [1, 2, 3]), (2, -1, [0, 5, 1]), (4, 3, [])]:
                expected = run(fn, tools, a, b, xs)
                found = run(new, tools, a, b, xs)
                assert found == expected, (
                    f"seed {seed}, a={a}, b={b}, xs={xs}\n{text}\n{staged.source}"
                )
