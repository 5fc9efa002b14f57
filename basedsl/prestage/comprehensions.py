"""Part of pass `desugar`: variables of comprehensions get names that no function has.

    v = 1; [v for v in xs]          v = 1; [__v_7__ for __v_7__ in xs]

From Python 3.12 on a comprehension runs inside the function around it. Where its variable has the
name of one that the function shares with others, as rewritten code does, CPython can mistake one
for the other (`def f(v): def g(): [0 for u, v in xs]; return lambda: v` fails in 3.12).
"""

from __future__ import annotations

from collections.abc import Iterable

from basedsl.prestage.nodes import FreshNames
from basedsl.prestage.scopes import Scope, Scopes


def separate_comprehensions(scopes: Scopes, outer: Iterable[str], fresh: FreshNames) -> bool:
    """Rename colliding variables in place; return whether there were any. `outer` are captured."""
    taken = set(outer)
    comprehensions: list[Scope] = []
    for scope in scopes.of.values():
        if scope.kind == "comprehension":
            comprehensions.append(scope)
        else:
            taken.update(scope.index)
    new: dict[tuple[Scope, str], str] = {}
    for scope in comprehensions:
        for name in scope.index:
            if name in taken:
                new[scope, name] = fresh.variable(name.strip("_"), scope.node.lineno)
    if new:
        for node, owner in scopes.owner.items():
            node.id = new.get((owner, node.id), node.id)
    return bool(new)
