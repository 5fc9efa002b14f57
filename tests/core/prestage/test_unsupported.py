"""Constructs that cannot be compiled are errors at the user's line, with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from basedsl import recursion_limit
from basedsl.errors import DSLError
from basedsl.prestage import stage_function

PROGRAMS = {
    "yield": "def f(n):\n    for i in range(n):\n        yield i  # here\n",
    "yield from": "def f(n):\n    x = 1\n    yield from n  # here\n",
    "generators": "def f(n):\n    def g():\n        yield 1  # here\n    return list(g())\n",
    "async def": "def f(n):\n    async def g():  # here\n        pass\n",
    "async function": "async def f(n):  # here\n    return n\n",
    "async for": "async def g(): pass\ndef f(n):\n    async def h():  # here\n"
    "        async for i in n: pass\n",
    "except*": "def f(n):\n    try:  # here\n        pass\n    except* ValueError:\n        pass\n",
    "'return' in a 'finally'": "def f(n):\n    if n:\n        try:\n            pass\n"
    "        finally:\n            return 1  # here\n    return 2\n",
    "'break' in a 'finally'": "def f(n):\n    for i in n:\n        try:\n            pass\n"
    "        finally:\n            break  # here\n",
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("construct", PROGRAMS)
def test_rejected(construct: str, tools: Any) -> None:
    text = PROGRAMS[construct]
    fn = tools.define(text)
    if construct == "async for":
        construct = "async def"
    with pytest.raises(DSLError) as caught:
        stage_function(fn)
    error = caught.value
    assert construct.split("'")[0] in error.message
    assert error.hint
    assert error.span is not None
    assert error.span.filename == fn.__code__.co_filename
    here = next(i for i, line in enumerate(text.split("\n"), 1) if "# here" in line)
    assert error.span.line == here
    assert "^" in str(error)


def test_too_deep(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion_limit, "LIMIT", 1000)
    cases = "".join(f"    elif n == {i}:\n        return {i}\n" for i in range(600))
    fn = tools.define(f"def f(n):\n    if n < 0:\n        return 0\n{cases}    return -1\n")
    with pytest.raises(DSLError, match="nested too deeply"):
        stage_function(fn)


def test_many_guards_in_a_row(tools: Any) -> None:
    lines = ["def f(n):"]
    for i in range(60):
        lines += [f"    if n == {i}:", f"        return {i * i}"]
    fn = tools.define("\n".join(lines) + "\n")
    tools.check(fn, (0,), (30,), (59,), (60,))
    assert stage_function(fn).source
