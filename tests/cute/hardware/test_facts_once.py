"""Limits of the hardware stand in `hardware` alone: other modules import them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import basedsl
import basedsl_cute

PACKAGE = Path(basedsl_cute.__file__).parent
# Registers of an SM, blocks of a grid in y and z, bytes of static shared memory, of that of a block
# and of an SM.
LIMITS = (64 << 10, 65535, 48 << 10, 99 << 10, 163 << 10, 227 << 10, 228 << 10)
# What the same numbers mean elsewhere, by the line.
ALLOWED = {
    "algebra/compose.py: _MAX_VERIFIED = 1 << 16": "coordinates that a check goes through",
    "algebra/inverse.py: _MAX_VERIFIED = 1 << 16": "coordinates that a check goes through",
    "interop/events.py: def record_events(capacity: int = 1 << 16) -> Iterator[Events]:": (
        "events of a buffer"
    ),
    "sim/debugging/values.py: MOST_ELEMENTS = 1 << 16  # of a tensor that is read whole": (
        "elements of a table"
    ),
    "ops/distributed/workspaces.py: blocks = self.blocks if a.nbytes > 1 << 16 else "
    "min(self.blocks, 8)": "bytes of a message",
    "distributed/signals.py: _GRACE = 1 << 16  # nanoseconds that a wait goes on after another one "
    "of its rank took too long": "nanoseconds",
    "algebra/draw.py: MAX_CELLS = 1 << 16": "cells of a picture",
    "sim/options.py: batch_lanes: int = 1 << 16": "lanes that run together",
}
# Warps counted by a literal, and constants named like a fact.
WRITTEN = re.compile(
    r"(\bthread\w*|\blanes) (//|%) 32\b|>> 5\b|\b32 \* self\.warps"
    r"|^_?(WARP|WARP_SIZE|LANES|REGISTERS|MAX_(THREADS|BLOCK|GRID|CLUSTER|SHARED)\w*) = \d"
    r"|\b\d+ threads of a block|\b1024 threads\b"
)
OPERATORS = {ast.Mult: operator.mul, ast.LShift: operator.lshift, ast.Sub: operator.sub}


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("hardware/"):
            yield name, path.read_text(encoding="utf-8")


def value_of(node: ast.AST) -> int | None:
    """The value of an integer, or of a product, shift or difference of such."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = value_of(node.left), value_of(node.right)
        if left is not None and right is not None and 0 <= right < 1 << 32:
            return OPERATORS[type(node.op)](left, right)
    return None


def stated(text: str) -> list[int]:
    """The lines of a program with a number of `LIMITS`, however it is written but as a mask."""
    tree = ast.parse(re.sub(r"\b0x\w+", "0", text))
    return sorted({node.lineno for node in ast.walk(tree) if value_of(node) in LIMITS})


def test_no_other_room_states_a_limit():
    found = set()
    for name, text in modules():
        lines = text.splitlines()
        found |= {f"{name}: {lines[number - 1].strip()}" for number in stated(text)}
    assert found == set(ALLOWED), "import it from basedsl_cute.hardware, or say what else it is"


def test_no_other_room_counts_a_warp():
    found = [
        f"{name}: {line.strip()}"
        for name, text in modules()
        for line in text.splitlines()
        if WRITTEN.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line", ["x = 65536", "f(227 * 1024)", "1 << 16", "2**3 + 48 * 1024", "a[(1 << 16) - 1]"]
)
def test_a_limit_is_found(line):
    assert stated(line) == [1]


def test_another_number_or_text_is_not():
    assert stated("x = 65537, 1024, 'a block of 65536', 65536.0, 1 << n, 0xFFFF  # 65536") == []


@pytest.mark.parametrize(
    "line", ["WARP = 32", "t = thread_id % 32", "return 32 * self.warps[0]", "the 1024 threads"]
)
def test_a_warp_is_found(line):
    assert WRITTEN.search(line)


def test_the_facts_need_only_errors_and_lines():
    taken = set()
    for path in (PACKAGE / "hardware").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("basedsl"):
                names = [alias.name for alias in node.names]
                own = node.module.startswith("basedsl_cute.hardware.")
                asks = node.module == "basedsl_cute" and names == ["hookspecs"]
                assert node.module == "basedsl" or own or asks
                if node.module == "basedsl":
                    taken |= {getattr(basedsl, alias.name).__module__ for alias in node.names}
    assert taken == {
        "basedsl.errors",
        "basedsl.location",
        "basedsl.plugin.manager",
        "basedsl.slips",
    }
