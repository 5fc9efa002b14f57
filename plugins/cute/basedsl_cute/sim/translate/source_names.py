"""Names of arrays as the user wrote them, from the line of source that makes an array."""

from __future__ import annotations

import ast
import linecache

from basedsl import Span
from basedsl_cute.sim.site import Site


def variable_name(site: Site) -> str | None:
    """The name that the innermost assignment around `site` gives to what is made there; None if its
    lines have no assignment to one name.
    """
    for span in (site.span, *site.callers):
        name = None if span is None else _assigned(span)
        if name is not None:
            return name
    return None


def _assigned(span: Span) -> str | None:
    text = linecache.getline(span.filename, span.line)
    indent = len(text) - len(text.lstrip())
    try:
        tree = ast.parse(text.strip() + ("\n" if text.strip().endswith(")") else ")"))
    except SyntaxError:
        head, equals, _ = text.strip().partition(" = ")
        return head if equals and head.isidentifier() else None
    match tree.body:
        case [ast.Assign([ast.Name(name)], _)] | [ast.AnnAssign(ast.Name(name))]:
            return name
        case [ast.Assign([ast.Tuple(targets)], ast.Tuple(values))]:
            at = span.col - indent
            for target, value in zip(targets, values, strict=False):
                end = value.end_col_offset or 0
                if isinstance(target, ast.Name) and value.col_offset <= at < end:
                    return target.id
    return None
