"""The table in docs/semantics.md: each row names what shows it, and what shows it is named."""

import fnmatch
import gc
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_toy as toy
from basedsl import DSLError
from basedsl.conformance.programs import all_cases

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "semantics.md").read_text()


def rows(heading):
    """The cells of the table's rows under a heading."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    found = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines]
    assert len(found) > 10 and all(len(row) == len(found[0]) for row in found)
    return found[1:]


def test_each_row_names_programs_that_are_refused():
    refused = {name for name, case in all_cases() if case.message}
    named = set()
    for row in rows("What is an error, and what to write"):
        for pattern in row[-1].split():
            if pattern.startswith("tests/"):
                assert (ROOT / pattern).exists(), row
                continue
            matched = {name for name in refused if fnmatch.fnmatchcase(name, pattern.strip("`"))}
            assert matched, f"{row[0]}: no program is called {pattern}"
            named |= matched
    assert not refused - named, "a row of docs/semantics.md must name these"


def test_each_licence_names_a_test_of_this_file():
    named = [row[-1].strip("`") for row in rows("Licensed differences")]
    tests = [name for name in globals() if name.startswith("test_") and "each_" not in name]
    assert sorted(named) == sorted(tests)


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")


def in_kernel(fn, *values, dtype=np.float32):
    """The number that `fn` gives in one thread of a kernel."""
    inner = cute.jit(fn)

    @cute.kernel
    def kernel(out: cute.Tensor, args):
        out[0] = inner(*args)

    @cute.jit
    def host(out: cute.Tensor, args):
        kernel(out, args).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(1, dtype)
    host(out, values)
    return out[0]


def test_integers_wrap():
    assert toy.jit(lambda n: n + 1)(2**63 - 1) == -(2**63)
    assert cute.jit(lambda n: n + 1)(2**31 - 1) == -(2**31)


def test_floats_have_the_precision_of_their_type():
    assert toy.jit(lambda x: x + 0.1)(0.2) == 0.2 + 0.1
    assert cute.jit(lambda x: x + 0.1)(0.2) == np.float32(0.2) + np.float32(0.1)


def test_large_floats():
    with pytest.raises(DSLError, match="does not fit Float32"):
        cute.jit(lambda x: x)(1e300)
    assert cute.jit(lambda x: x * x)(1e30) == math.inf


def test_an_int_meets_a_float():
    def f(n, x):
        return n if n > 1 else x

    assert (f(2, 0.5), toy.jit(f)(2, 0.5)) == (2, 2.0)
    assert type(toy.jit(f)(2, 0.5)) is float


def test_a_bool_meets_an_int():
    def f(n):
        return (n == 3) if n > 1 else n

    assert f(2) is False and toy.jit(f)(2) == 0 and type(toy.jit(f)(2)) is int


def test_numpy_scalars():
    """A NumPy scalar and a dynamic number give a number of the wider type, as two DSL types do."""

    @toy.jit
    def f(n):
        return np.int8(100) + n, n + np.float32(0.5)

    assert f(50) == (150, 50.5)


def test_quotients_in_kernels():
    n, m = 2**24 + 1, 5
    exact = np.float32(n / m)
    assert exact != np.float32(n) / np.float32(m)
    assert cute.jit(lambda n, m: n / m)(n, m) == exact
    assert in_kernel(lambda n, m: n / m, n, m) == np.float32(n) / np.float32(m)


def test_floats_in_kernels():
    assert in_kernel(lambda x: x / 0.0, 1.0) == math.inf
    assert math.isnan(in_kernel(lambda x: math.sqrt(x), -1.0))
    assert in_kernel(lambda x: int(x), math.nan, dtype=np.int32) == 0
    assert in_kernel(lambda x: int(x), 1e30, dtype=np.int32) == 2**31 - 1


def test_products_and_sums_in_kernels():
    x, y = float(np.float32(1 + 2**-12)), float(np.float32(1 + 2**-11 + 2**-23))
    once = in_kernel(lambda x, y: x * x - y, x, y)
    assert once == np.float32(x * x - y) != np.float32(x) * np.float32(x) - np.float32(y)


def test_items_of_any_and_all():
    """Later items are computed where the items come from `map` and the like."""

    def f(n):
        return any(k == 0 or 6 // (n - k) == 9 for k in (n * 0, n))

    def mapped(n):
        def decides(k):
            return k == 0 or 6 // (n - k) == 9

        return any(map(decides, (n * 0, n)))

    assert f(2) is mapped(2) is toy.jit(f)(2) is True
    with pytest.raises(ZeroDivisionError):
        toy.jit(mapped)(2)

    def counted(n):
        seen = [0]

        def noted(k):
            seen[0] += 1
            return k == n

        return any(noted(k) for k in (1, 2, 3)), seen[0]

    def counted_by_map(n):
        seen = [0]

        def noted(k):
            seen[0] += 1
            return k == n

        return any(map(noted, (1, 2, 3))), seen[0]

    assert toy.jit(counted)(2) == counted(2) == counted_by_map(2) == (True, 2)
    with pytest.raises(DSLError, match=r"'seen' is changed by a later item of any\(\)"):
        toy.jit(counted_by_map)(2)


def test_texts():
    """A text that shows a dynamic value has ? for it, in messages; nothing may read it."""

    @toy.jit
    def f(n):
        if n > 2:
            raise ValueError(f"n is {n}")
        return n

    assert f(2) == 2
    with pytest.raises(ValueError, match=r"n is \?"):
        f(3)
    reads = lambda n: len(re.findall(r"\d", str(n)))  # noqa: E731
    for asked in (reads, lambda n: f"{n}", lambda n: str(n) == "3", lambda n: {"3": 1}[f"{n}"]):
        with pytest.raises(DSLError, match="a text that shows a value of run time is"):
            toy.jit(asked)(3)

    def label(n):
        text = f"item {n}"
        return text

    @toy.jit
    def raising(n):
        if n > 2:
            raise ValueError(label(n))
        return n

    assert raising(2) == 2
    with pytest.raises(ValueError, match=r"item \?"):
        raising(3)
    for asked in (lambda n: len(label(n)), lambda n: label(n), lambda n: len(str([n]))):
        with pytest.raises(DSLError, match="a text that shows a value of run time is used here"):
            toy.jit(asked)(3)


def test_prints(capsys):
    @toy.jit
    def f(n):
        print("compiling")
        return n

    assert [f(1), f(2)] == [1, 2]
    assert capsys.readouterr().out == "compiling\n"


def test_getattribute():
    """Reads of the compiler's own arrive there, too; the result is Python's."""

    class Counted:
        value = 5

        def __getattribute__(self, name):
            reads.append(name)
            return object.__getattribute__(self, name)

    reads, counted = [], Counted()
    assert toy.jit(lambda n: counted.value + n)(2) == 7
    assert reads.count("value") == 1 and set(reads) == {"value", "__class__", "__dict__"}


def test_coordinates_in_kernels():
    values = np.arange(4, dtype=np.float32)
    with pytest.raises(DSLError):
        in_kernel(lambda a: a[-1], values)


def test_conversions_to_narrow_floats():
    @cute.jit
    def f(x):
        return x.to(cute.Float8E4M3FN).to(cute.Float32)

    assert f(math.inf) == 448.0


def test_truth_that_decides_twice():
    asked = []

    class Flag:
        def __bool__(self):
            asked.append(self)
            return False

    flag = Flag()

    @toy.jit
    def value(n):
        return (flag and 1) or n

    @toy.jit
    def condition(n):
        return n if (flag and 1) or n else 0

    asked.clear()
    assert value(3) == 3 and len(asked) == 2
    asked.clear()
    assert condition(3) == 3 and len(asked) == 1


def test_exceptions():
    class Error(ValueError):
        def __init__(self, code):
            super().__init__(f"code {code}")

    @toy.jit
    def f(n):
        if n > 0:
            raise Error(7) from KeyError("why")
        return n

    with pytest.raises(Error, match="code 7") as caught:
        f(1)
    assert caught.value.__cause__ is None


def test_compile():
    log = []

    @toy.jit
    def f(n):
        log.append(1)
        return n + len(log)

    compiled = f.compile(1)
    assert [compiled(1), compiled(1), len(log)] == [2, 2, 1]
    assert [f(1), f(1)] == [3, 4]


def test_attributes_bound_first():
    class Plan:
        pass

    class Planned:
        tiles = 0

    @toy.jit
    def f(plan, n):
        plan.tiles = n
        return plan.tiles + 1

    plan, planned = Plan(), Planned()
    made = toy.jit(lambda n: f.fn(plan, n))
    assert made(1) == 2 and not hasattr(plan, "tiles")
    with pytest.raises(DSLError, match=r"'planned\.tiles' outlives the call"):
        toy.jit(lambda n: f.fn(planned, n))(1)


def test_text_of_a_module_by_a_name_made_at_run_time():
    name = "".join(["o", "s"])

    @toy.jit
    def f(n):
        return n + len(getattr(__import__(name), "BASEDSL_LICENCE", ""))

    assert f(1) == 1
    os.BASEDSL_LICENCE = "abc"
    try:
        assert f(1) == 1
    finally:
        del os.BASEDSL_LICENCE


def test_the_interpreter_while_compiling():
    """The limit is larger and the collector is paused; afterwards both are as before."""

    @toy.jit
    def f(n):
        return n + (sys.getrecursionlimit() > limit) + (not gc.isenabled())

    limit = min(sys.getrecursionlimit(), 3999)
    before = sys.getrecursionlimit(), gc.isenabled()
    assert f(0) in (1, 2)
    assert (sys.getrecursionlimit(), gc.isenabled()) == before


def test_names_of_functions():
    """A change by static code is an effect of each call; another one is not seen."""

    def named():
        pass

    @toy.jit
    def grows(n):
        named.__name__ += "x"
        return n + len(named.__name__)

    @toy.jit
    def reads(n):
        return n + len(named.__name__)

    assert [grows(0), grows(0)] == [6, 7]
    assert [reads(0), reads(0)] == [7, 7]
    named.__name__ = "f"
    assert reads(0) == 7
