"""Random structured programs: text of a Python function, for running it by Python and by a DSL.

Programs are well typed (each variable keeps its kind), read only names bound on every path, end.
Ints stay below 2**31 in magnitude, so that width does not matter; with `exact` floats stay small
multiples of 1/4 (no `*` and `/`), so that precision does not either. All else is left to chance:
loops with exits, branches, early returns, objects, tuples, lists, nested functions.

Every program has the same signature, `program(n, m, x, flag, a)`: two ints, a float, a bool and a
buffer of ints with LENGTH items. It may raise, for instance ZeroDivisionError.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from basedsl.conformance.features import features_of
from basedsl.conformance.variety import LENGTH, WRAP, Variety

HEADER = """\
from contextlib import suppress
from basedsl import range_constexpr
from basedsl.conformance.objects import Counter, Frozen, OutOfRange, Pair, Point
"""

Names = dict[str, str]  # variable -> kind


@dataclass
class _Scope:
    """The names that may be used at one place of a program."""

    bound: Names
    depth: int = 0
    loop: bool = False  # `break` and `continue` mean a loop of this function
    loops: int = 0
    fixed: frozenset[str] = frozenset()  # counters that nothing else may assign
    local: bool = False  # in a nested function: assigns its own names only

    def child(self, **changes: object) -> _Scope:
        made = _Scope(
            dict(self.bound), self.depth + 1, self.loop, self.loops, self.fixed, self.local
        )
        for name, value in changes.items():
            setattr(made, name, value)
        return made


@dataclass
class Generator(Variety):
    """Makes one program. `exact`: see the module; `budget` bounds the number of statements;
    `without` are features (`features.FEATURES`) that it must not have.
    """

    seed: int
    exact: bool = False
    without: frozenset[str] = frozenset()
    budget: int = 26
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.count = 0
        self.functions: list[tuple[str, str]] = []
        self.returns = self.random.choice(["int", "int", "float", "pair"])

    def program(self) -> str:
        """Return the source text of one module with a function `program`."""
        kinds = {name: kind for name, kind in self.parameters.items() if kind != "buffer"}
        scope = _Scope(kinds)
        body: list[str] = []
        for name, kind in self.random.sample(
            [
                ("v", "int"),
                ("w", "int"),
                ("y", "float"),
                ("b", "bool"),
                ("t", "tuple"),
                ("p", "Point"),
                ("c", "Counter"),
                ("z", "Frozen"),
                ("q", "Pair"),
                ("xs", "list"),
                ("d", "dict"),
            ],
            self.random.randint(3, 7),
        ):
            made = self.allowed(scope, self.first_value(name, kind, scope))
            if made:
                body += made
                scope.bound[name] = kind
        while self.budget > 0:
            body += self.allowed(scope, lambda: self.statement(scope)[0])
        last = self.allowed(scope, lambda: [f"return {self.result(scope)}"])
        body += last or (["return n"] if "results" not in self.without else ["pass"])
        text = "".join(f"    {line}\n" for line in body)
        return f"{HEADER}\n\ndef program({', '.join(self.parameters)}):\n{text}"

    def first_value(self, name: str, kind: str, scope: _Scope) -> Callable[[], list[str]]:
        return lambda: [f"{name} = {self.value(kind, scope)}"]

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the program, and the kind of each."""
        found = {"n": "int", "m": "int", "x": "float", "flag": "bool", "a": "buffer"}
        for name, feature in (("x", "floats"), ("a", "buffers")):
            if feature in self.without:
                del found[name]
        return found

    def allowed(self, scope: _Scope, make: Callable[[], list[str]]) -> list[str]:
        """Return lines that need none of the features that the program must not have; nothing if a
        few attempts all do.
        """
        for _ in range(8 if self.without else 1):
            bound, functions = dict(scope.bound), list(self.functions)
            lines = make()
            if not self.without or not self.needs(lines) & self.without:
                return lines
            scope.bound, self.functions = bound, functions
        self.budget -= 1
        return []

    def needs(self, lines: list[str]) -> frozenset[str]:
        """Return the features of lines of the program's body."""
        text = "def body():\n" + "".join(f"    {line}\n" for line in lines)
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        found = features_of(text) - {"results"}
        found |= {"buffers"} if "a" in names else set()
        return frozenset(found | ({"floats"} if names & {"x", "math"} else set()))

    # Expressions -------------------------------------------------------------------------------

    def pick(self, scope: _Scope, *kinds: str) -> str | None:
        known = [name for name, kind in scope.bound.items() if kind in kinds]
        return self.random.choice(known) if known else None

    def value(self, kind: str, scope: _Scope, depth: int = 2) -> str:
        made: str = getattr(self, f"{kind}_")(scope, depth)
        return made

    def int_(self, scope: _Scope, depth: int = 2) -> str:
        r = self.random
        choice = r.random()
        if depth <= 0 or choice < 0.25:
            name = self.pick(scope, "int")
            return name if name and r.random() < 0.75 else str(r.randint(-9, 12))
        if r.random() < 0.15:
            return self.rare_int(scope, depth)
        a, b = (self.int_(scope, depth - 1) for _ in range(2))
        if choice < 0.45:
            return f"({a} {r.choice('+-')} {b})"
        if choice < 0.52:
            return f"({a} * {b} % {WRAP})"
        if choice < 0.58:
            divisor = r.choice(
                [f"(abs({b}) + 1)", str(r.choice([-7, -3, 2, 5])), f"a[{b} % {LENGTH}]"]
            )
            return f"({a} {r.choice(['//', '%'])} {divisor})"
        if choice < 0.63:
            return f"{r.choice(['min', 'max'])}({a}, {b})"
        if choice < 0.69:
            return f"({a} if {self.bool_(scope, depth - 1)} else {b})"
        if choice < 0.73:
            return f"({a} {r.choice(['and', 'or'])} {b})"
        if choice < 0.76:
            return f"({a} {r.choice('&|^')} {b})"
        if choice < 0.79:
            return f"a[{a} % {LENGTH}]"
        if choice < 0.82:
            return f"abs({a})"
        if choice < 0.85:
            return f"sum([{a} % {WRAP} + k for k in range_constexpr({r.randint(0, 3)})])"
        if choice < 0.87:
            return f"divmod({a}, {r.choice([3, -4])})[{r.randint(0, 1)}]"
        if choice < 0.89 and self.functions:
            name = self.callable(scope, "int")
            if name:
                return f"{name}({a}, {b})"
        return self.part(scope) or f"int({self.float_(scope, 0)})"

    def part(self, scope: _Scope) -> str | None:
        """Return an int inside some object."""
        r = self.random
        name = self.pick(scope, "tuple", "Point", "Counter", "Frozen", "Pair", "list", "dict")
        if name is None:
            return None
        match scope.bound[name]:
            case "tuple":
                return f"{name}[{r.choice(['0', '1', '-1', f'({self.int_(scope, 0)}) % 2'])}]"
            case "list":
                return f"{name}[{r.choice(['0', '2', '-1', f'({self.int_(scope, 0)}) % 3'])}]"
            case "dict":
                return f"{name}['{r.choice('ab')}']"
            case "Point":
                return r.choice([f"{name}.x", f"{name}.y", f"{name}.total()"])
            case "Counter":
                return r.choice([f"{name}.count", f"{name}.point.x", f"{name}.recent[0]"])
            case "Frozen":
                return r.choice([f"{name}.low", f"{name}.high"])
            case _:
                return r.choice([f"{name}.first", f"{name}.second"])

    def float_(self, scope: _Scope, depth: int = 2) -> str:
        r = self.random
        choice = r.random()
        if depth <= 0 or choice < 0.35:
            name = self.pick(scope, "float")
            return name if name and r.random() < 0.7 else str(r.randint(-20, 20) / 4)
        if r.random() < 0.15:
            return self.rare_float(scope, depth)
        a, b = (self.float_(scope, depth - 1) for _ in range(2))
        if choice < 0.55:
            return f"({a} {r.choice('+-' if self.exact else '+-*')} {b})"
        if choice < 0.65:
            return f"{r.choice(['min', 'max'])}({a}, {b})"
        if choice < 0.75:
            return f"({a} if {self.bool_(scope, depth - 1)} else {b})"
        if choice < 0.8:
            return f"({a} {r.choice(['and', 'or'])} {b})"
        if choice < 0.85 and not self.exact:
            return f"({a} / {r.choice([f'(abs({b}) + 1.5)', '3', '-0.7', f'({b} + a[0])'])})"
        if choice < 0.92:
            return f"float({self.int_(scope, depth - 1)} % {WRAP})"
        return f"({a} + {self.int_(scope, depth - 1)} % {WRAP})"

    def bool_(self, scope: _Scope, depth: int = 2) -> str:
        r = self.random
        choice = r.random()
        if depth <= 0 or choice < 0.15:
            name = self.pick(scope, "bool")
            if name and r.random() < 0.6:
                return name
            depth = 0
        if depth > 0 and r.random() < 0.15:
            return self.rare_bool(scope, depth)
        if choice < 0.6 or depth <= 0:
            a, b = self.int_(scope, depth - 1), self.int_(scope, depth - 1)
            return f"({a} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {b})"
        if choice < 0.68:
            a, b = self.float_(scope, depth - 1), self.float_(scope, depth - 1)
            return f"({a} {r.choice(['<', '<=', '>', '>='])} {b})"
        if choice < 0.75:
            a, b, c = (self.int_(scope, 0) for _ in range(3))
            return f"({a} {r.choice(['<', '<=', '!='])} {b} {r.choice(['<', '>='])} {c})"
        if choice < 0.8:
            return f"(not {self.bool_(scope, depth - 1)})"
        if choice < 0.84:
            i = self.int_(scope, 0)
            return f"(0 <= {i} < {LENGTH} and a[{i}] > {self.int_(scope, 0)})"
        a, b = self.bool_(scope, depth - 1), self.bool_(scope, depth - 1)
        return f"({a} {r.choice(['and', 'or'])} {b})"

    def tuple_(self, scope: _Scope, depth: int = 1) -> str:
        return f"({self.int_(scope, 1)}, {self.int_(scope, 1)})"

    def list_(self, scope: _Scope, depth: int = 1) -> str:
        return f"[{', '.join(self.int_(scope, 1) for _ in range(3))}]"

    def dict_(self, scope: _Scope, depth: int = 1) -> str:
        return f"{{'a': {self.int_(scope, 1)}, 'b': {self.int_(scope, 1)}}}"

    def Point_(self, scope: _Scope, depth: int = 1) -> str:
        return f"Point({self.int_(scope, 1)}, {self.int_(scope, 1)})"

    def Pair_(self, scope: _Scope, depth: int = 1) -> str:
        return f"Pair({self.int_(scope, 1)}, {self.int_(scope, 1)})"

    def Frozen_(self, scope: _Scope, depth: int = 1) -> str:
        return f"Frozen({self.int_(scope, 1)}, {self.int_(scope, 1)})"

    def Counter_(self, scope: _Scope, depth: int = 1) -> str:
        return f"Counter({self.int_(scope, 1)})"

    def result(self, scope: _Scope) -> str:
        if self.returns == "int":
            return self.int_(scope)
        if self.returns == "float":
            return self.float_(scope)
        return f"({self.int_(scope)}, {self.float_(scope, 1)})"

    def callable(self, scope: _Scope, kind: str) -> str | None:
        known = [n for n, k in self.functions if k == kind and scope.bound.get(n) == "function"]
        return self.random.choice(known) if known else None

    # Statements --------------------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def block(self, scope: _Scope, least: int = 1) -> tuple[list[str], bool]:
        """Return some statements, and whether control goes on after them."""
        lines: list[str] = []
        for _ in range(self.random.randint(least, 3)):
            more, goes_on = self.statement(scope)
            lines += more
            if not goes_on:
                return lines, False
        return lines, True

    def statement(self, scope: _Scope) -> tuple[list[str], bool]:
        self.budget -= 1
        r = self.random
        choice = r.random()
        if scope.depth >= 4 or self.budget < 0:
            choice *= 0.42
        if scope.depth and choice < 0.03:
            return [f"return {self.int_(scope) if scope.local else self.result(scope)}"], False
        if scope.loop and choice < 0.07:
            return [r.choice(["break", "continue"])], False
        if choice < 0.09:
            return ["pass"], True
        if choice < 0.42:
            rare = r.random() < 0.2
            return self.rare_lines(scope) if rare else self.assign(scope), True
        if choice < 0.66:
            return self.if_(scope)
        if choice < 0.82:
            return self.for_(scope)
        if choice < 0.91:
            return self.while_(scope)
        if choice < 0.95 and scope.depth == 0:
            return self.function(scope), True
        return self.unrolled(scope)

    def target(self, scope: _Scope, kind: str) -> str:
        """Return a variable to assign: an existing or a new one."""
        known = [
            name
            for name, k in scope.bound.items()
            if k == kind and name not in scope.fixed and not name.startswith("arg")
        ]
        if scope.local:
            known = [name for name in known if name.startswith("loc")]
        if known and self.random.random() < 0.7:
            return self.random.choice(known)
        return self.fresh("loc" if scope.local else "u")

    def wrapped(self, text: str, scope: _Scope) -> str:
        if scope.loops == 0 and self.random.random() < 0.5:
            return text
        return f"{text} % {WRAP}"

    def bounded(self, text: str, scope: _Scope) -> str:
        return text if scope.loops == 0 else f"max(min({text}, 64.0), -64.0)"

    def assign(self, scope: _Scope) -> list[str]:
        r = self.random
        choice = r.random()
        if choice < 0.3:
            name = self.target(scope, "int")
            line = f"{name} = {self.wrapped(self.int_(scope), scope)}"
            scope.bound[name] = "int"
            return [line]
        if choice < 0.42:
            name = self.target(scope, "int")
            if name in scope.bound:
                return [f"{name} {r.choice(['+', '-', '^'])}= {self.int_(scope, 0)} % 16"]
            line = f"{name} = (wal := {self.int_(scope, 1)} % 97) + wal"
            scope.bound[name] = "int"
            return [line] if not scope.local else [line.replace("wal", "locwal")]
        if choice < 0.54:
            name = self.target(scope, "float")
            line = f"{name} = {self.bounded(self.float_(scope), scope)}"
            scope.bound[name] = "float"
            return [line]
        if choice < 0.62:
            name = self.target(scope, "bool")
            line = f"{name} = {self.bool_(scope)}"
            scope.bound[name] = "bool"
            return [line]
        if choice < 0.7:
            first, second = self.target(scope, "int"), self.target(scope, "int")
            if first == second:
                return ["pass"]
            values = f"{self.int_(scope, 1)} % {WRAP}, {self.int_(scope, 1)} % {WRAP}"
            last = self.int_(scope, 0)
            scope.bound[first] = scope.bound[second] = "int"
            if r.random() < 0.2 and not scope.local:
                rest = self.fresh("r")
                return [f"{first}, *{rest}, {second} = {values}, {last}"]
            return [f"{first}, {second} = {values}"]
        if choice < 0.76:
            return [f"a[{self.int_(scope, 1)} % {LENGTH}] = {self.int_(scope, 1)} % {WRAP}"]
        return self.change(scope)

    def change(self, scope: _Scope) -> list[str]:
        """Return statements that change an object, or bind a variable to a new one."""
        r = self.random
        name = self.pick(scope, "tuple", "Point", "Counter", "Frozen", "Pair", "list", "dict")
        if name is None:
            return ["pass"]
        kind = scope.bound[name]
        v = f"{self.int_(scope, 1)} % {WRAP}"
        if kind in ("tuple", "Pair", "Frozen"):
            if scope.local:
                return ["pass"]
            parts = f"{v}, {self.int_(scope, 1)} % {WRAP}"
            made = {"tuple": f"({parts})", "Pair": f"Pair({parts})", "Frozen": f"Frozen({parts})"}
            extra = [f"{name}._replace(first={v})"] if kind == "Pair" else []
            extra += [f"{name}.moved({self.int_(scope, 0)} % 8)"] if kind == "Frozen" else []
            return [f"{name} = {r.choice([made[kind], *extra])}"]
        match kind:
            case "list":
                i = r.choice(["0", "-1", "1", f"({self.int_(scope, 0)}) % 3"])
                return [f"{name}[{i}] = {v}"]
            case "dict":
                return [f"{name}['{r.choice('ab')}'] {r.choice(['=', '^='])} {v}"]
            case "Point":
                return [r.choice([f"{name}.x = {v}", f"{name}.move({v})", f"{name}.flip()"])]
            case _:
                return [
                    r.choice(
                        [
                            f"{name}.tick({v})",
                            f"{name}.count = {v}",
                            f"{name}.point.move({v})",
                            f"{name}.recent = ({v}, {name}.recent[0])",
                        ]
                    )
                ]

    def if_(self, scope: _Scope) -> tuple[list[str], bool]:
        r = self.random
        lines: list[str] = []
        ends: list[Names] = []
        count = r.choice([1, 1, 1, 2])
        for i in range(count):
            inside = scope.child()
            lines.append(f"{'elif' if i else 'if'} {self.bool_(inside)}:")
            body, goes_on = self.block(inside)
            lines += _indent(body)
            if goes_on:
                ends.append(inside.bound)
        if r.random() < 0.6:
            inside = scope.child()
            body, goes_on = self.block(inside)
            lines += ["else:", *_indent(body)]
            if goes_on:
                ends.append(inside.bound)
        else:
            ends.append(scope.bound)
        if not ends:
            return lines, False
        self.keep(scope, ends)
        return lines, True

    def keep(self, scope: _Scope, ends: list[Names]) -> None:
        """Keep the variables that are bound, as the same kind, at each end of a construct."""
        common = set(ends[0].items()).intersection(*(set(e.items()) for e in ends[1:]))
        scope.bound = {k: v for k, v in ends[0].items() if (k, v) in common}

    def for_(self, scope: _Scope) -> tuple[list[str], bool]:
        r = self.random
        i = self.fresh("i")
        small = f"{self.int_(scope, 1)} % 6"
        bounds = r.choice(
            [
                small,
                f"{r.randint(0, 4)}",
                f"{r.randint(-3, 3)}, {small}",
                f"{small}, {r.randint(-3, 3)}, -{r.randint(1, 3)}",
                f"{r.randint(-2, 3)}, {small}, {r.randint(1, 3)}",
                f"{small}, {self.int_(scope, 0)} % 7, {self.int_(scope, 0)} % 3 + 1",
                f"{small}, {self.int_(scope, 0)} % 7, -({self.int_(scope, 0)} % 3) - 1",
            ]
        )
        lines = [f"for {i} in range({bounds}):"]
        return self.loop(scope, lines, {i: "int"}, frozenset([i]), [])

    def unrolled(self, scope: _Scope) -> tuple[list[str], bool]:
        r = self.random
        i, j = self.fresh("i"), self.fresh("j")
        items = ", ".join(str(r.randint(-5, 9)) for _ in range(r.randint(1, 3)))
        values = ", ".join(self.int_(scope, 0) for _ in range(3))
        head, names = r.choice(
            [
                (f"for {i} in ({items},):", [i]),
                (f"for {i}, {j} in enumerate([{values}]):", [i, j]),
                (f"for {i}, {j} in zip(({values}), [{values}]):", [i, j]),
                (f"for {i} in range_constexpr({r.randint(0, 3)}):", [i]),
                (f"for {i} in reversed(({values})):", [i]),
            ]
        )
        return self.loop(scope, [head], dict.fromkeys(names, "int"), frozenset(names), [])

    def while_(self, scope: _Scope) -> tuple[list[str], bool]:
        r = self.random
        k = self.fresh("loc" if scope.local else "k")
        before = [f"{k} = 0"]
        scope.bound[k] = "int"
        scope.fixed |= {k}
        limit = r.randint(1, 6)
        if r.random() < 0.6:
            head = r.choice(
                [
                    f"while {k} < {limit} and {self.bool_(scope, 1)}:",
                    f"while {k} < {self.int_(scope, 0)} % 7:",
                    f"while ({self.bool_(scope, 1)}) and {k} < {limit}:",
                ]
            )
            first = [f"{k} += 1"]
        else:
            head = "while True:"
            first = [f"{k} += 1", f"if {k} > {limit}:", "    break"]
        return self.loop(scope, [*before, head], {}, frozenset([k]), first)

    def loop(
        self,
        scope: _Scope,
        lines: list[str],
        variables: Names,
        fixed: frozenset[str],
        first: list[str],
    ) -> tuple[list[str], bool]:
        inside = scope.child(loop=True, loops=scope.loops + 1, fixed=scope.fixed | fixed)
        inside.bound.update(variables)
        body, _ = self.block(inside)
        lines += _indent([*first, *body])
        if self.random.random() < 0.25:
            after = scope.child()
            body, goes_on = self.block(after)
            if goes_on:
                lines += ["else:", *_indent(body)]
        return lines, True

    def function(self, scope: _Scope) -> list[str]:
        name = self.fresh("f")
        bound = {k: v for k, v in scope.bound.items() if v != "function"}
        inside = _Scope(
            {**bound, "arg1": "int", "arg2": "int"}, 1, local=True, fixed=frozenset(bound)
        )
        body, goes_on = self.block(inside, 2)
        if goes_on:
            body.append(f"return {self.int_(inside, 1)} % {WRAP}")
        scope.bound[name] = "function"
        self.functions.append((name, "int"))
        return [f"def {name}(arg1, arg2):", *_indent(body)]


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def inputs(seed: int, count: int = 5) -> list[tuple[int, int, float, bool, list[int]]]:
    """Return arguments for a program: edges first, then random ones."""
    r = random.Random(seed * 7919 + 1)
    found: list[tuple[int, int, float, bool, list[int]]] = [
        (0, 0, 0.0, False, [0] * LENGTH),
        (3, -2, -1.5, True, [5, -1, 0, 7, 2, -3]),
    ]
    while len(found) < count:
        found.append(
            (
                r.randint(-12, 20),
                r.randint(-12, 20),
                r.randint(-40, 40) / 4,
                r.random() < 0.5,
                [r.randint(-20, 20) for _ in range(LENGTH)],
            )
        )
    return found
