"""Aliases that exist only if a loop does not run.

    e = d = [1, 2]
    for i in range(n):
        d = [i, i]
    d[0] = 50                 # is e[0] 50 now? If n is 0

After the loop `d` is a place of its own, a copy of the old one where the loop did not run. That is
what Python means as long as neither of the two changes. If anything else refers to the old one
(Python's reference count says so), a change of either is an error.
"""

from __future__ import annotations

import sys
from collections import Counter

from basedsl.errors import DSLError
from basedsl.location import Span
from basedsl.metastage.state import PlaceContents, StateSnapshot, refreshed, same_contents
from basedsl.tracing import Trace


def _references(place: object) -> int:
    return sys.getrefcount(place)


def _own_references() -> int:
    """Count the references that a call itself adds to `_references`; versions of Python differ."""
    held = [[0]]
    place = held[0]
    return _references(place) - 1


_OWN_REFERENCES = _own_references()


def shared_places(snapshot: StateSnapshot) -> set[int]:
    """Return the ids of the places in a new snapshot that something else refers to as well.

    A place that has one holder is referred to by it, by the snapshot as a leaf of the holder, and
    by its own node.
    """
    held = Counter(id(leaf) for contents in snapshot.values() for leaf in contents.leaves)
    found = set()
    for contents in snapshot.values():
        place = contents.place
        holders = _references(place) - _OWN_REFERENCES
        if held[id(place)] > 1 or holders > 2 * held[id(place)] + 1:
            found.add(id(place))
    return found


def check_later(
    trace: Trace, name: str, old: PlaceContents, new: PlaceContents, span: Span | None
) -> None:
    """Note that `new` may be `old` at run time: changing one later in this region is an error."""
    before = [refreshed(contents) for contents in (old, new)]

    def check() -> None:
        if not all(same_contents(contents, refreshed(contents)) for contents in before):
            raise DSLError(
                f"'{name}' and another name may be one object after this loop, and one is changed",
                span,
                notes=((f"'{name}' stays the old object if the loop does not run", None),),
                hint=f"give '{name}' a copy of its own before the loop, or build a new object "
                "after it",
            )

    trace.region.checks.append(check)
