"""The examples in the docstrings of the core's public names run, and give what they say."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest

import basedsl
from basedsl import numeric, testing
from basedsl.errors import DSLTypeError


def example(thing: Any) -> str:
    """The block of a docstring that is indented below a line of text."""
    found = re.search(r"\n\n((?:    .*\n|\n)+)", (inspect.getdoc(thing) or "") + "\n")
    assert found is not None, f"{thing} has no example"
    return textwrap.dedent(found[1])


@pytest.mark.parametrize("thing", [numeric, numeric.promote, numeric.Numeric, numeric.Numeric.to])
def test_numeric_examples(thing: Any) -> None:
    lines = [line.split("#") for line in example(thing).splitlines() if "#" in line]
    assert lines
    for code, said in lines:
        expected = said.strip()
        if expected.startswith("DSLTypeError: "):
            message = expected.removeprefix("DSLTypeError: ").removesuffix("...")
            with pytest.raises(DSLTypeError, match=re.escape(message)):
                eval(code, vars(numeric))
        else:
            assert repr(eval(code, vars(numeric))) == expected.split(":")[0]


PROGRAM = """
import basedsl, basedsl_toy as toy
@toy.jit
def f(x: toy.Buffer, n, i, width: toy.Constexpr):
    total = 0.0
{body}
    return total
"""


@pytest.mark.parametrize(
    ("thing", "more", "expected"),
    [
        (basedsl.range, "", 15.0),
        (basedsl.range_constexpr, "", 10.0),
        (basedsl.const_expr, "\n    total = 1.0", 1.0),
    ],
)
def test_loop_examples(thing: Any, more: str, expected: float, tmp_path: Path) -> None:
    body = re.sub(r"\.\.\..*", more, example(thing)) if more else example(thing)
    path = tmp_path / "example.py"
    path.write_text(PROGRAM.format(body=textwrap.indent(body, "    ")))
    f = run_path(str(path))["f"]
    assert f(np.arange(6.0), 6, 1, 4) == expected


def test_the_example_of_filecheck() -> None:
    filecheck = testing.filecheck
    code = example(filecheck)
    exec(code, {"filecheck": filecheck})
    with pytest.raises(AssertionError):
        exec(code.replace("= arith.addi %", "= arith.muli %"), {"filecheck": filecheck})
