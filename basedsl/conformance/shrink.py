"""Makes a failing program small: parts of its syntax tree are removed while it still fails."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator

Edit = Callable[[], Callable[[], None]]  # makes a change, returns what takes it back

_BLOCKS = ("body", "orelse", "finalbody")


def shrink(
    source: str, fails: Callable[[str], bool], budget: int = 1500, seconds: float = 60.0
) -> str:
    """Return a smaller program for which `fails` is true, as it is for `source`.

    `fails` gets the text of a candidate; it must be false for texts that are no programs. `budget`
    bounds the candidates, and after `seconds` none is tried any more.
    """
    end = time.monotonic() + seconds
    tree = ast.parse(source)
    best = ast.unparse(tree)
    if not fails(best):
        return source
    progress = True
    while progress and budget > 0:
        progress = False
        edits = list(_edits(tree))
        for edit in edits:
            budget -= 1
            if budget <= 0 or time.monotonic() > end:
                return best
            undo = edit()
            try:
                text = ast.unparse(ast.fix_missing_locations(tree))
            except (ValueError, AttributeError):
                undo()
                continue
            if len(text) < len(best) and fails(text):
                best = text
                progress = True
            else:
                undo()
        tree = ast.parse(best)
    return best


def _edits(tree: ast.Module) -> Iterator[Edit]:
    """Return changes to try, the large ones first."""
    for node in ast.walk(tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                for statement in list(block):
                    if isinstance(statement, ast.stmt):
                        yield from _statement_edits(block, statement, name)
    for node in list(ast.walk(tree)):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(node, ast.arguments):
                yield from _expression_edits(node, field, value)
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield from _item_edits(value, i, item)


def _statement_edits(block: list[ast.stmt], statement: ast.stmt, name: str) -> Iterator[Edit]:
    def remove() -> Callable[[], None]:
        before = list(block)
        if statement in block:
            block.remove(statement)
        if not block and name == "body":
            block.append(ast.Pass())
        return lambda: block.__setitem__(slice(None), before)

    yield remove
    inner = [s for n in _BLOCKS for s in getattr(statement, n, [])]
    if inner and not isinstance(statement, ast.FunctionDef):

        def hoist() -> Callable[[], None]:
            before = list(block)
            if statement in block:
                at = block.index(statement)
                block[at : at + 1] = inner
            return lambda: block.__setitem__(slice(None), before)

        yield hoist


def _smaller(value: ast.expr) -> list[ast.expr]:
    if isinstance(getattr(value, "ctx", None), ast.Store | ast.Del):
        return []
    found = [child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr)]
    if not isinstance(value, ast.Constant | ast.Name):
        found += [ast.Constant(0), ast.Constant(1), ast.Constant(True)]
    return found


def _expression_edits(node: ast.AST, field: str, value: ast.expr) -> Iterator[Edit]:
    for other in _smaller(value):

        def replace(other: ast.expr = other) -> Callable[[], None]:
            before = getattr(node, field)
            setattr(node, field, other)
            return lambda: setattr(node, field, before)

        yield replace


def _item_edits(items: list[ast.expr], index: int, value: ast.expr) -> Iterator[Edit]:
    for other in _smaller(value):

        def replace(other: ast.expr = other) -> Callable[[], None]:
            if index >= len(items):
                return lambda: None
            before = items[index]
            items[index] = other
            return lambda: items.__setitem__(index, before)

        yield replace
