"""Programs that people write give what Python gives, or an error that points into them.

A sample runs always, all of them in `make test-slow`.
"""

import sys
from pathlib import Path

import pytest

from basedsl.plugin import plugin_manager

sys.path.insert(0, str(Path(__file__).parent))
from attack import FOLDER, Attack, attacks, outcome

FILES = sorted(FOLDER.glob("*.txt"))
DSLS = ("toy", "cute-host", "cute-kernel")


def check(dsl, some, monkeypatch):
    """Run programs on a DSL; AssertionError with all that are not as they must be."""
    conformance = plugin_manager().conformances()[dsl].load()
    monkeypatch.setenv("BASEDSL_CACHE", "0")
    for name, value in conformance.environment.items():
        monkeypatch.setenv(name, value)
    wrong = []
    for attack in some:
        expected, found = attack.expects(dsl), outcome(conformance, attack)
        kind, _, words = expected.partition(": ")
        if kind != found.partition(": ")[0] or (kind == "refused" and words not in found):
            wrong.append(f"{attack.name}: {expected or 'as Python'}, but {found or 'as Python'}")
    assert not wrong, "\n".join(wrong)


def test_names_are_found_once():
    names = [attack.name for file in FILES for attack in attacks(file)]
    assert len(names) == len(set(names)) > 1500


@pytest.mark.parametrize(("dsl", "step"), [("toy", 60), ("cute-host", 300), ("cute-kernel", 300)])
def test_a_sample(dsl, step, monkeypatch):
    every = [attack for file in FILES for attack in attacks(file)]
    check(dsl, every[7::step], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("dsl", DSLS)
def test_all(dsl, file, monkeypatch):
    check(dsl, attacks(file), monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        "def program(n, x):\n    return n + (type(jit(f)).__name__ == 'function')\n",
        "SEEN = type(jit(f)).__name__\ndef program(n, x):\n    return n\n",
        "def program(n, x):\n    assert type(jit(f)).__name__ != 'function'\n    return n\n",
    ],
    ids=["result", "state", "exception"],
)
def test_a_difference_is_found(text):
    """`jit` is another function for Python, which gives a program away that asks for it."""
    conformance = plugin_manager().conformances()["toy"].load()
    program = Attack("differs", f"def f():\n    pass\n{text}", {})
    assert outcome(conformance, program).startswith("differs: ")
