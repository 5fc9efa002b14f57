"""Differences of two texts of a compilation, blind to the numbers of SSA values and registers."""

from __future__ import annotations

import difflib
import re

_NUMBERED = re.compile(r"(%[A-Za-z_]*)\d+(?:_\d+)?|(\^bb|\bBB|\$L__[A-Za-z_]*)\d+(?:_\d+)?")
_CONTEXT = 3


def difference(old: str, new: str, old_name: str, new_name: str) -> list[str]:
    """Return the unified difference of two texts as lines; empty if they are equal.

    Lines that differ only in the numbers of values, registers and labels count as equal: a pass
    that removes one operation renumbers all after it.
    """
    old_lines, new_lines = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(
        None, [_masked(line) for line in old_lines], [_masked(line) for line in new_lines], False
    )
    found: list[str] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        at = f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@"
        found += [at]
        for tag, i, j, k, m in group:
            if tag == "equal":
                found += [f" {line}" for line in new_lines[k:m]]
            else:
                found += [f"-{line}" for line in old_lines[i:j]]
                found += [f"+{line}" for line in new_lines[k:m]]
    return [f"--- {old_name}", f"+++ {new_name}", *found] if found else []


def _masked(line: str) -> str:
    return _NUMBERED.sub(lambda match: match[1] or match[2], line)
