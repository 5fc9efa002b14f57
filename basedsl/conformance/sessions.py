"""Random sessions: several calls of one program, with state of the module between them.

A session's program changes objects of its module (containers, an object, a class, a function, an
array, a text, an iterator, random numbers, a mutable default) and an array of its own, mostly where
Python decides alone. After each call everything that outlives it must be what Python leaves, and so
must the result. A refusal ends a session: where captured code changes what it cannot carry, an
error is right, and anything else is not.
"""

from __future__ import annotations

import copy
import linecache
from dataclasses import dataclass
from typing import Any, NamedTuple

from basedsl.conformance.cases import Buf
from basedsl.conformance.compare import difference, divides_by_zero, run_dsl, run_python, same
from basedsl.conformance.declaration import Conformance
from basedsl.conformance.fuzz import quick_compiler
from basedsl.conformance.generate import Generator, inputs
from basedsl.conformance.variety import WRAP
from basedsl.errors import DSLError

STATE = """
import io
import itertools
import random
from collections import deque

import numpy as np

LOG = [1, 2]
RING = deque([1, 2, 3], maxlen=4)
SEEN = {1}
TEXT = io.StringIO()
TURNS = itertools.count(3)
CHANCE = random.Random(7)
TABLE = {'a': 1, 'b': 2}
BOX = Point(1, 2)
ARRAY = np.zeros(3, np.int64)
COUNT = 0


class Level:
    height = 2

    @classmethod
    def up(cls, by):
        cls.height = (cls.height + by) % 89
        return cls.height


def note(value, held=[0]):
    held.append(value)
    return len(held)


def counted():
    counted.calls = getattr(counted, 'calls', 0) + 1
    return counted.calls


def tick():
    global COUNT
    COUNT = (COUNT + 1) % 7
    return COUNT


def state():
    own = LOG, TABLE, (BOX.x, BOX.y), ARRAY.tolist(), note.__defaults__, COUNT, Level.height
    library = list(RING), sorted(SEEN), TEXT.getvalue(), repr(TURNS), CHANCE.getstate()
    return own, library, getattr(counted, 'calls', 0)
"""
#: What ends a session: an error that says that a program has no meaning in a DSL.
REFUSALS = (
    "outlives the call and cannot hold a dynamic value",
    "inside staged control flow",
    "while compiling, then raises",
    "while compiling, on a path",
    "changes in this loop from",
    "changes its structure",
    "on one path and",
    "depending on a dynamic condition",
    "is changed by a later item of",
)
ORDER = (0, 1, 0, 1, 1, 2)


@dataclass
class SessionGenerator(Generator):
    """Makes the program of a session."""

    budget: int = 9

    def program(self) -> str:
        """Return the source text of a module with functions `program` and `state`."""
        head, _, body = super().program().partition("\n\ndef program")
        own = "    own = np.zeros(2, np.int64)\n"
        first, _, rest = body.partition("\n")
        return f"{head}{STATE}\n\ndef program{first}\n{own}{rest}"

    def statement(self, scope: Any) -> tuple[list[str], bool]:
        """Return a statement; at the top, often one that changes the state."""
        chance = 0.5 if scope.depth == 0 else 0.01
        if scope.local or self.random.random() > chance:
            return super().statement(scope)
        self.budget -= 1
        return [self.effect(scope)], True

    def effect(self, scope: Any) -> str:
        """Return a statement that changes something outside."""
        r = self.random
        k = r.randint(1, 9)
        if r.random() < 0.02:
            return f"BOX.y = {self.int_(scope, 0)} % {WRAP}"
        return r.choice(
            [
                f"LOG.append({k})",
                "LOG.reverse()",
                f"LOG[-1] = (LOG[0] + {k}) % 97",
                f"TABLE['{r.choice('ab')}'] ^= {k}",
                f"TABLE['{r.choice('cd')}'] = len(TABLE)",
                f"BOX.move({k})",
                f"BOX.x = (BOX.x * 3 + {k}) % {WRAP}",
                f"ARRAY[{r.randint(0, 2)}] += {k}",
                f"own[{r.randint(0, 1)}] += {k}",
                f"note({k})",
                "tick()",
                f"RING.append({k})",
                f"RING.rotate({k})",
                f"SEEN.add({k} * len(SEEN) % 11)",
                f"SEEN.discard({k})",
                f"TEXT.write('{k}')",
                "next(TURNS)",
                "CHANCE.random()",
                f"Level.up({k})",
                f"Level.height = {k}",
                "counted()",
            ]
        )

    def int_(self, scope: Any, depth: int = 2) -> str:
        """Return an int expression; sometimes one that reads, or changes, the state."""
        r = self.random
        if scope.depth == 0 and r.random() < 0.12:
            return r.choice(
                "len(LOG);LOG[-1];TABLE['a'];len(TABLE);BOX.x;BOX.total();int(ARRAY[1]);"
                "int(own[0]);note(3);tick();sum(RING);RING[0];len(SEEN);int(2 in SEEN);TEXT.tell();"
                "next(TURNS);CHANCE.randint(1, 9);Level.height;Level.up(2);counted()".split(";")
            )
        return super().int_(scope, depth)


class SessionReport(NamedTuple):
    """The outcome of a session: the difference in words ("" if none), the calls made, and True if
    a refusal ended it.
    """

    failure: str
    calls: int
    refused: bool = False


def run_session(conformance: Conformance, seed: int, text: str) -> SessionReport:
    """Run the calls of a session by Python and by a DSL, up to the first difference or refusal."""
    python_module = _load_source(text, f"<session {seed} in Python>")
    dsl_module = _load_source(text, f"<session {seed}>")
    compiled = conformance.entry(dsl_module["program"])
    rows = inputs(seed)
    for number, which in enumerate(ORDER, 1):
        *scalars, items = rows[which]
        args = (*scalars, Buf(items))
        python = run_python(python_module["program"], args, {})
        dsl = run_dsl(conformance, compiled, args, {})
        if isinstance(dsl.error, DSLError) and any(one in str(dsl.error) for one in REFUSALS):
            return SessionReport("", number, refused=True)
        if dsl.error is None and divides_by_zero(conformance, python):
            return SessionReport("", number, refused=True)
        found = difference(conformance, python, dsl)
        left, kept = python_module["state"](), dsl_module["state"]()
        if not found and not same(conformance, left, kept):
            found = f"Python leaves the state {left}, {conformance.name} leaves {kept}"
        if found:
            return SessionReport(f"call {number}, for {args}\n{found}", number)
    return SessionReport("", len(ORDER))


def check_session(conformance: Conformance, seed: int) -> SessionReport:
    """Run the session of `seed`; the report on a difference shows its program."""
    text = SessionGenerator(seed, exact=conformance.float_bits < 64).program()
    with quick_compiler(conformance, seed):
        report = run_session(conformance, seed, text)
    if not report.failure:
        return report
    return report._replace(failure=f"session {seed}: {report.failure}\n\n{text}")


def _load_source(text: str, filename: str) -> dict[str, Any]:
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    variables: dict[str, Any] = {"__name__": copy.copy(filename)}
    exec(compile(text, filename, "exec"), variables)
    return variables
