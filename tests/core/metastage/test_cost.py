"""Tracing costs are linear in the nesting: bodies are counted, never time."""

from __future__ import annotations

import linecache
from collections import Counter
from typing import Any

import pytest

import basedsl_toy as toy
from basedsl.testing import TraceLog

NOTED = TraceLog()


def program_of(lines: list[str]) -> Any:
    text = "\n".join(["def program(n):", *lines]) + "\n"
    filename = f"<nested {hash(text)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    variables: dict[str, Any] = {"note": NOTED, "__name__": "nested"}
    exec(compile(text, filename, "exec"), variables)
    NOTED.clear()
    return toy.jit(variables["program"])


SHAPES = {
    # Head, first statement, innermost statement (which gives `total` another type than 0 has).
    "for": ("for i{0} in range(n):", "pass", "total += 0.5"),
    "while": ("while k{0} < n:", "k{0} += 1", "total += 0.5"),
    "static while": ("while k{0} < 1:", "k{0} += 1", "total += 0.5"),
    "while True": ("while True:", "k{0} += 1\n{1}if k{0} > n:\n{1}    break", "total += 0.5"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_bodies_are_traced_a_bounded_number_of_times(shape: str) -> None:
    depth = 6
    head, first, innermost = SHAPES[shape]
    lines = ["    total = 0"]
    for level in range(depth):
        indent = "    " * (level + 1)
        lines += [f"{indent}k{level} = 0", indent + head.format(level)]
        lines += [
            f"{indent}    note({level})",
            indent + "    " + first.format(level, indent + "    "),
        ]
    lines += ["    " * (depth + 1) + innermost, "    return total + 0.0"]
    compiled = program_of(lines).compile(2)
    once = 1 if shape == "static while" else 2
    assert compiled(2) == 0.5 * once**depth
    # Each level tries its own guesses; what one level has learnt is not learnt again by another.
    counts = Counter(NOTED)
    assert set(counts) == set(range(depth))
    assert all(count <= 3 * (level + 1) for level, count in counts.items()), counts


def test_branches_are_traced_once() -> None:
    depth = 8
    lines = ["    total = 0"]
    for level in range(depth):
        indent = "    " * (level + 1)
        lines += [f"{indent}if n > {level}:", f"{indent}    note({level})"]
    program_of([*lines, "    " * (depth + 1) + "total = 1", "    return total"]).compile(3)
    assert Counter(NOTED) == dict.fromkeys(range(depth), 1)
