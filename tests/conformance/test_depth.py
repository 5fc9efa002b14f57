"""Programs that are nested deeply: chains of branches and operands, and where they end."""

import linecache
import sys

import pytest

import basedsl_toy as toy
from basedsl import DSLError


def define(text, name):
    filename = f"<deep {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    variables = {"__name__": filename}
    exec(compile(text, filename, "exec"), variables)
    return variables["f"]


def chain_of_elifs(count):
    cases = "".join(f"    elif n == {i}:\n        return {i * i}\n" for i in range(1, count))
    return f"def f(n):\n    if n == 0:\n        return 0\n{cases}    return -1\n"


def joined(operator, terms):
    return f"def f(n):\n    return {f' {operator} '.join(terms)}\n"


@pytest.mark.parametrize(
    "text",
    [
        chain_of_elifs(150),
        joined("+", ["n"] * 700),
        joined("and", [f"n != {i}" for i in range(5, 150)]),
        joined("or", [f"n == {i}" for i in range(5, 150)]),
    ],
    ids=["elif", "plus", "and", "or"],
)
def test_long_chains(text):
    fn = define(text, "chain")
    compiled = toy.jit(fn)
    limit = sys.getrecursionlimit()
    for n in (0, 3, 77, 149, 500):
        assert compiled(n) == fn(n)
    assert sys.getrecursionlimit() == limit


def test_what_is_too_deep_says_so():
    fn = define(joined("and", [f"n != {i}" for i in range(1200)]), "too deep")
    with pytest.raises(DSLError, match=r"nested too deeply to be compiled"):
        toy.jit(fn)(1)


def test_functions_of_equal_text_are_traced_as_fast_as_others():
    # Comparing equal code objects would take time exponential in this depth.
    for name in ("one", "other"):
        assert toy.jit(define(chain_of_elifs(60), name))(7) == 49
    text = chain_of_elifs(60)
    for _ in range(2):  # the same file name: all of the code is equal
        assert toy.jit(define(text, "same"))(8) == 64
