"""Changes behind objects of libraries, and where only a digest or all globals can tell."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import collections, contextvars, enum, functools, math, os, sys, threading, types, weakref
import numpy as np

{setup}

def f(x):
    return x + {expression}

def change():
    {change}
"""

# Name -> set-up, what f adds to its argument, a statement that makes 1 into 5.
CASES = {
    "a deque": ("d = collections.deque([1])", "d[0]", "d.appendleft(5)"),
    "a view of a dict": ("t = {'a': 1}\nv = types.MappingProxyType(t)", "v['a']", "t['a'] = 5"),
    "a chain of dicts": ("c = collections.ChainMap({'a': 1})", "c['a']", "c['a'] = 5"),
    "a user's list": ("u = collections.UserList([1])", "u[0]", "u[0] = 5"),
    "a counter": ("c = collections.Counter(a=1)", "c['a']", "c.update(a=4)"),
    "a weak reference": (
        "class C: n = 1\nc = C()\nr = weakref.ref(c)",
        "r().n",
        "c.n = 5",
    ),
    "a variable of a context": (
        "v = contextvars.ContextVar('v', default=1)",
        "v.get()",
        "v.set(5)",
    ),
    "a variable of a thread": ("t = threading.local()\nt.n = 1", "t.n", "t.n = 5"),
    "an attribute of a metaclass": (
        "class M(type): n = 1\nclass C(metaclass=M): pass",
        "C.n",
        "M.n = 5",
    ),
    "an attribute of a class whose metaclass names no module": (
        "class M(type):\n    __module__ = property(lambda c: 3)\nclass C(metaclass=M): n = 1",
        "C.n",
        "C.n = 5",
    ),
    "a descriptor": (
        "class D:\n    n = 1\n    def __get__(self, o, t): return self.n\nclass C: a = D()",
        "C.a",
        "vars(C)['a'].n = 5",
    ),
    "what __getattr__ finds": (
        "t = {'n': 1}\nclass C:\n    def __getattr__(self, name): return t[name]\nc = C()",
        "c.n",
        "t['n'] = 5",
    ),
    "globals()": ("n = 1", "globals()['n']", "globals()['n'] = 5"),
    "eval": ("n = 1", "eval('n')", "globals()['n'] = 5"),
    "a function made by exec": (
        "scope = {'n': 1}\nexec('def g(): return n', scope)\ng = scope['g']",
        "g()",
        "scope['n'] = 5",
    ),
    "a number put into a library": ("math.held_n = 1", "math.held_n", "math.held_n = 5"),
    "a list put into a library": ("sys.held_l = [1]", "sys.held_l[0]", "sys.held_l[0] = 5"),
    "a large array": (
        "a = np.zeros(100_000, np.int64)\na[70_000] = 1",
        "int(a[70_000])",
        "a[70_000] = 5",
    ),
    "a large array turned round": (
        "a = np.zeros((300, 400), np.int64).T\na[7, 8] = 1",
        "int(a[7, 8])",
        "a[7, 8] = 5",
    ),
    "a member of an enum": (
        "class E(enum.Enum):\n    A = 1\n    B = 5\ne = E.A",
        "e.value",
        "globals()['e'] = E.B",
    ),
    "a NumPy scalar": ("n = np.int64(1)", "int(n)", "globals()['n'] = np.int64(5)"),
    "a cached function": (
        "n = 1\n@functools.cache\ndef g(): return n",
        "g()",
        "globals()['n'] = 5; g.cache_clear()",
    ),
    "keywords of a partial": (
        "s = types.SimpleNamespace(n=1)\np = functools.partial(lambda k: k.n, k=s)",
        "p()",
        "s.n = 5",
    ),
    "os.environ in a helper": (
        "os.environ['HELD_N'] = '1'\ndef g(): return int(os.environ['HELD_N'])",
        "g()",
        "os.environ['HELD_N'] = '5'",
    ),
}


def load(path: Path, text: str) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("calls", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_a_change_compiles_again(
    dsl: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, calls: int
) -> None:
    monkeypatch.setenv("HELD_N", "")
    setup, expression, change = CASES[name]
    text = PROGRAM.format(setup=setup, expression=expression, change=change)
    module = load(tmp_path / f"held_case_{calls}.py", text)
    f = dsl.jit(module.f)
    assert [f(10) for _ in range(calls)] == [11] * calls
    module.change()
    assert [f(10) for _ in range(4)] == [15] * 4


def test_a_constant_imported_from_a_module(dsl: Any, tmp_path: Path) -> None:
    module = load(tmp_path / "importer.py", "from math import pi as N\ndef f(x): return x * N\n")
    f = dsl.jit(module.f)
    assert [f(2.0) for _ in range(4)] == [2.0 * module.N] * 4
    module.N = 5.0
    assert [f(2.0) for _ in range(4)] == [10.0] * 4


def test_a_module_reloaded_from_a_changed_file(dsl: Any, tmp_path: Path) -> None:
    path = tmp_path / "reloaded.py"
    module = load(path, "N = 1\ndef helper(x): return x + N\n")
    user = load(tmp_path / "user.py", "def f(x): return module.helper(x)\n")
    user.module = module
    f = dsl.jit(user.f)
    assert [f(10) for _ in range(4)] == [11] * 4
    path.write_text("N = 5\n\ndef helper(x): return x * N\n")
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    assert [f(10) for _ in range(4)] == [50] * 4
