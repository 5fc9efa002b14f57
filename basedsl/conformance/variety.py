"""The rarer features of random programs, mixed into `generate.Generator`.

Each method gives text for one place of a program and keeps the generator's promises: kinds of
variables, magnitudes, no endless loop. `try`, `with` and `match` are made of static parts, as they
must be.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any

LENGTH = 6
WRAP = 1009


class Variety(ABC):
    """Makes expressions and statements that most programs do without."""

    random: random.Random
    count: int

    # Methods of the generator ---------------------------------------------------------------

    @abstractmethod
    def pick(self, scope: Any, *kinds: str) -> str | None: ...

    @abstractmethod
    def int_(self, scope: Any, depth: int = 2) -> str: ...

    @abstractmethod
    def float_(self, scope: Any, depth: int = 2) -> str: ...

    @abstractmethod
    def bool_(self, scope: Any, depth: int = 2) -> str: ...

    @abstractmethod
    def fresh(self, prefix: str) -> str: ...

    @abstractmethod
    def target(self, scope: Any, kind: str) -> str: ...

    # Expressions ----------------------------------------------------------------------------

    def rare_int(self, scope: Any, depth: int) -> str:
        """Return an int expression of one of the rarer operations."""
        r = self.random
        a, b = self.int_(scope, depth - 1), self.int_(scope, depth - 1)
        k = r.randint(1, 4)
        return r.choice(
            [
                f"(({a} % 7 - 3) ** {r.randint(0, 4)})",
                f"pow({a} % 5, {b} % 4)",
                f"round({self.float_(scope, 0)})",
                f"({a} % 64 << {b} % 5)",
                f"({a} >> {b} % 9)",
                f"(~{a})",
                f"({self.bool_(scope, 1)} + {a})",
                f"int({self.bool_(scope, 1)})",
                f"max([{a}, {b}, {r.randint(-9, 9)}])",
                f"min({a}, {b}, {r.randint(-9, 9)})",
                f"(lambda p, q={r.randint(-3, 3)}: p - q)({a})",
                f"(lambda p, q: q if p > q else p)({a}, {b})",
                f"sum(k % {WRAP} for k in ({a}, {b}) if k is not None)",
                f"sum([u * v % {WRAP} for u, v in zip(({a}, {k}), ({b}, {k}))])",
                f"{{'x': {a}, 'y': {b}}}['{r.choice('xy')}']",
                f"[{a}, {b}, {k}][({b}) % 3]",
                f"divmod({a}, {r.choice([7, -5])})[{r.randint(0, 1)}]",
                f"abs({a} - {b})",
            ]
        )

    def rare_float(self, scope: Any, depth: int) -> str:
        """Return a float expression in which ints and floats meet."""
        r = self.random
        n, x = f"({self.int_(scope, 1)} % {WRAP})", self.float_(scope, depth - 1)
        c = self.bool_(scope, 1)
        return r.choice(
            [
                f"(({n} if {c} else {x}) + 0.0)",
                f"(({x} if {c} else {n}) + 0.0)",
                f"(max({n}, {x}) + 0.0)",
                f"(min({x}, {n}, 2) + 0.0)",
                f"(({n} or {x}) + 0.0)",
                f"(({x} and {n}) + 0.0)",
                f"({x} // {r.choice(['2.0', '-0.5', '4'])})",
                f"({x} % {r.choice(['2.0', '-0.5', '4'])})",
                f"divmod({x}, {r.choice(['2.0', '-4.0'])})[{r.randint(0, 1)}]",
                f"float({c})",
                f"({c} * {x})",
            ]
        )

    def rare_bool(self, scope: Any, depth: int) -> str:
        """Return a bool expression: a search, a reduction, an equality of floats."""
        r = self.random
        a, b = self.int_(scope, 0), self.int_(scope, 0)
        not_ = r.choice(["", "not "])
        c = self.bool_(scope, depth - 1)
        return r.choice(
            [
                f"({a} {not_}in ({b}, {r.randint(-5, 9)}, {a}))",
                f"({a} {not_}in [{b}, {b} + 1])",
                f"({a} % 8 {not_}in {{1, 3, 4}})",
                f"({a} {not_}in range({b} % 5, 9, {r.choice([1, 2, 3])}))",
                f"({a} {not_}in range(6, {b} % 4, -{r.choice([1, 2])}))",
                f"any([{c}, {a} > {b}])",
                f"all(({c}, {a} != {b}))",
                f"any(k == {a} for k in ({b}, 0, 3))",
                f"all(k < {a} for k in ({b}, 0, 3))",
                f"({self.float_(scope, 0)} {r.choice(['==', '!='])} {self.float_(scope, 0)})",
                f"({c} {r.choice('&|^')} ({a} < {b}))",
                f"({c} {r.choice(['==', '!='])} ({a} < {b}))",
                f"bool({a})",
                self.edge_comparison(a, b),
            ]
        )

    def edge_comparison(self, a: str, b: str) -> str:
        """Return a comparison of an int and a float near the largest ints that floats hold."""
        edge = 2**24 if getattr(self, "exact", False) else 2**53
        sign = self.random.choice(["==", "!=", "<", "<=", ">", ">="])
        number, other = f"({edge} + {a} % 5)", f"({edge}.0 + float({b} % 3 * 2))"
        if self.random.random() < 0.5:
            number, other = other, number
        return f"({number} {sign} {other})"

    # Statements -----------------------------------------------------------------------------

    def rare_lines(self, scope: Any) -> list[str]:
        """Return statements after which control goes on, unless they raise."""
        r = self.random
        made: list[str] = r.choice(
            [
                self._assert,
                self._raise,
                self._delete,
                self._chain,
                self._nested_targets,
                self._starred,
                self._walrus,
                self._buffer_update,
                self._try,
                self._match,
                self._with,
                self._over_objects,
                self._attributes_swap,
                self._closure,
            ]
        )(scope)
        return made

    def _value(self, scope: Any) -> str:
        return f"{self.int_(scope, 1)} % {WRAP}"

    def _assert(self, scope: Any) -> list[str]:
        return [f"assert {self.int_(scope, 1)} % 31 != 7, 'a remainder'"]

    def _raise(self, scope: Any) -> list[str]:
        error = self.random.choice(
            [
                "ValueError('no value')",
                "LookupError('no key')",
                "OutOfRange('far', 3)",
                "RuntimeError",
                "IndexError('too far') from ValueError('why')",
            ]
        )
        return [f"if {self.int_(scope, 1)} % 37 == 5:", f"    raise {error}"]

    def _delete(self, scope: Any) -> list[str]:
        name = self.fresh("loc" if scope.local else "gone")
        return [f"{name} = {self.int_(scope, 1)}", f"del {name}"]

    def _chain(self, scope: Any) -> list[str]:
        first, second = self.target(scope, "int"), self.target(scope, "int")
        line = f"{first} = {second} = {self._value(scope)}"
        scope.bound[first] = scope.bound[second] = "int"
        return [line]

    def _nested_targets(self, scope: Any) -> list[str]:
        names = [self.target(scope, "int") for _ in range(3)]
        if len(set(names)) < 3:
            return ["pass"]
        a, b, c = names
        values = [self._value(scope) for _ in range(3)]
        line = f"({a}, {b}), {c} = ({values[0]}, {values[1]}), {values[2]}"
        scope.bound.update(dict.fromkeys(names, "int"))
        return [line]

    def _starred(self, scope: Any) -> list[str]:
        first, rest = self.target(scope, "int"), self.fresh("loc" if scope.local else "rest")
        items = ", ".join(self._value(scope) for _ in range(self.random.randint(2, 4)))
        lines = [f"{first}, *{rest} = {items}", f"{first} = ({first} + {rest}[-1]) % {WRAP}"]
        scope.bound[first] = "int"
        return lines

    def _walrus(self, scope: Any) -> list[str]:
        name, other = (self.fresh("loc" if scope.local else "w") for _ in range(2))
        test = f"({name} := {self._value(scope)}) > {self.int_(scope, 0)}"
        if self.random.random() < 0.5:
            test += f" and ({other} := {name} + 1) < 50"
            line = f"    {name} = {other}"
        else:
            line = f"    {name} = {name} - 1"
        scope.bound[name] = "int"
        return [f"if {test}:", line]

    def _buffer_update(self, scope: Any) -> list[str]:
        at = f"a[{self.int_(scope, 1)} % {LENGTH}]"
        return [f"{at} {self.random.choice(['+', '-', '^', '|'])}= {self.int_(scope, 0)} % 16"]

    def _try(self, scope: Any) -> list[str]:
        name = self.fresh("loc" if scope.local else "s")
        text = self.random.choice(["12", "twelve"])
        line = self.random.choice(["finally:", "else:"])
        scope.bound[name] = "int"
        return [
            *(f"{name} = 0", "try:", f"    {name} = int('{text}')"),
            *("except ValueError:", f"    {name} = -1", line, f"    {name} += 3"),
        ]

    def _match(self, scope: Any) -> list[str]:
        name = self.target(scope, "int")
        first, second = self._value(scope), self._value(scope)
        scope.bound[name] = "int"
        return [
            *(
                f"match {self.random.randint(0, 2)}:",
                "    case 0 | 1:",
                f"        {name} = {first}",
            ),
            *("    case _:", f"        {name} = {second}"),
        ]

    def _with(self, scope: Any) -> list[str]:
        name = self.fresh("loc" if scope.local else "s")
        scope.bound[name] = "int"
        lines = [f"{name} = 1", "with suppress(ValueError):", f"    {name} = int('x')"]
        return [*lines, f"{name} = {name} + 1"]

    def _over_objects(self, scope: Any) -> list[str]:
        names = [n for n, k in scope.bound.items() if k == "Point"]
        if len(names) < 2:
            return ["pass"]
        one = self.fresh("loc" if scope.local else "o")
        items = ", ".join(self.random.sample(names, 2))
        return [f"for {one} in ({items}):", f"    {one}.move({self._value(scope)})"]

    def _attributes_swap(self, scope: Any) -> list[str]:
        name = self.pick(scope, "Point")
        return ["pass"] if name is None else [f"{name}.x, {name}.y = {name}.y, {name}.x % 101"]

    def _closure(self, scope: Any) -> list[str]:
        """Return a function that changes a variable of the one around it, called at once."""
        names = [
            n
            for n, k in scope.bound.items()
            if k == "int" and n not in scope.fixed and not n.startswith(("arg", "loc", "n", "m"))
        ]
        if scope.local or scope.loops or scope.depth or not names:
            return ["pass"]
        name, function = self.random.choice(names), self.fresh("bump")
        return [
            *(f"def {function}(by):", f"    nonlocal {name}"),
            *(f"    {name} = ({name} + by) % {WRAP}", f"    return {name}"),
            *(f"for turn in range({self.int_(scope, 0)} % 4):", f"    {function}(turn)"),
        ]
