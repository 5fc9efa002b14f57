"""Random programs, run by Python and by a DSL, and made small where they disagree."""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import os
from collections.abc import Callable, Iterator
from typing import Any

from basedsl.conformance.cases import Buf
from basedsl.conformance.compare import difference, run_dsl, run_python
from basedsl.conformance.declaration import Conformance
from basedsl.conformance.generate import Generator, inputs
from basedsl.conformance.shrink import shrink
from basedsl.conformance.time_limit import limited

# A program that was cut wrongly raises these: no finding.
_NO_PROGRAM = (NameError, TypeError, AttributeError, SyntaxError, RecursionError, KeyError)


def generate(conformance: Conformance, seed: int) -> str:
    """Return the program of a seed, as text, with floats that fit the DSL's precision."""
    without = frozenset(conformance.without)
    return Generator(seed, exact=conformance.float_bits < 64, without=without).program()


def load_program(text: str, filename: str) -> Callable[..., Any]:
    """Return the function `program` of a text, whose source can be found."""
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    variables: dict[str, Any] = {"__name__": filename}
    exec(compile(text, filename, "exec"), variables)
    program: Callable[..., Any] = variables["program"]
    return program


def failure(conformance: Conformance, seed: int, text: str) -> str:
    """Return how a program differs, in words that begin with its kind; "" if not."""
    try:
        fn = load_program(text, f"<fuzz {seed}>")
    except (SyntaxError, KeyError, NameError):
        return ""
    compiled = conformance.entry(fn)
    for n, m, x, flag, items in inputs(seed):
        values = {"n": n, "m": m, "x": x, "flag": flag, "a": Buf(items)}
        args = tuple(values[name] for name in inspect.signature(fn).parameters)
        python = run_python(fn, args, {})
        if isinstance(python.error, _NO_PROGRAM):
            return ""
        dsl = run_dsl(conformance, compiled, args, {})
        if dsl.error is not None and (python.error is None or isinstance(dsl.error, _NO_PROGRAM)):
            kind = f"{type(dsl.error).__name__}: {str(dsl.error)[:25]}"
            return f"{kind}\nfor {args}\n{dsl.error}"
        found = difference(conformance, python, dsl)
        if found:
            return f"different\nfor {args}\n{found}"
    return ""


@contextlib.contextmanager
def quick_compiler(conformance: Conformance, seed: int) -> Iterator[None]:
    """Compile seven programs of eight without LLVM's optimiser, which takes a third of the time and
    whose part in the meaning of a program is small.
    """
    variable = f"{conformance.dsl.language.options_class.PREFIX}OPT_LEVEL"
    if seed % 8 == 0 or variable in os.environ:
        yield
        return
    os.environ[variable] = "0"
    try:
        yield
    finally:
        del os.environ[variable]


def check_seed(conformance: Conformance, seed: int) -> str:
    """Return a report on the program of `seed`, made small; "" if both agree."""
    limit = 4 * conformance.time_limit  # for one that fails, the making of a small one too
    with quick_compiler(conformance, seed), limited(f"the program of seed {seed}", limit):
        return _check_text(conformance, seed, generate(conformance, seed))


def _check_text(conformance: Conformance, seed: int, text: str) -> str:
    first = failure(conformance, seed, text)
    if not first:
        return ""
    kind = first.splitlines()[0]

    def fails(candidate: str) -> bool:
        return _ends(candidate) and failure(conformance, seed, candidate).startswith(kind)

    small = shrink(text, fails, seconds=min(conformance.time_limit or 60, 60))
    return f"seed {seed}: {failure(conformance, seed, small)}\n\n{small}"


def _ends(text: str) -> bool:
    """Return True if every `while` of a cut program still counts and asks for its counter."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.While):
            first, second = node.body[0], node.body[min(1, len(node.body) - 1)]
            if not (isinstance(first, ast.AugAssign) and isinstance(first.op, ast.Add)):
                return False
            asked = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
            if isinstance(second, ast.If) and isinstance(second.body[0], ast.Break):
                asked |= {n.id for n in ast.walk(second.test) if isinstance(n, ast.Name)}
            if ast.unparse(first.target) not in asked or ast.unparse(first.value) != "1":
                return False
    return True
