"""Which Python lines the lines of PTX and of machine code as text come from, by line tables."""

from __future__ import annotations

import re

from basedsl import Lined

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
# PTX ISA 11.5.5, ".loc": file, line and column, and those of the call of an inlined function.
_PLACE = re.compile(r"(?:\.loc|inlined_at)\s+(\d+)\s+(\d+)\s+(\d+)")
_SECTION = re.compile(r"^\s*\.section\s+\.debug_")
# nvdisasm -g: a comment before the instructions of a line, and one for each call it is inlined in.
_SASS = re.compile(r'//## File "([^"]+)", line (\d+)( inlined at)?')


def of_ptx(text: str) -> Lined:
    """Read PTX with `.loc` directives; the text is the one without them and their tables."""
    files = {int(m[1]): m[2] for line in text.splitlines() if (m := _FILE.match(line))}
    lines, places = [], []
    now: tuple[tuple[str, int], ...] = ()
    for line in text.splitlines():
        if _SECTION.match(line):
            break
        if re.match(r"\s*\.loc\s", line):
            found = [(files.get(int(f), ""), int(n)) for f, n, _ in _PLACE.findall(line)]
            now = tuple(place for place in found if place[0] and place[1])
            continue
        if _FILE.match(line):
            continue
        if re.match(r"\s*(\}|\.visible|\.entry|\.func)", line):
            now = ()
        is_code = line.startswith("\t") and not line.strip().startswith((".", "//"))
        lines.append(line)
        places.append(now if is_code else ())
    return Lined("\n".join(lines) + "\n", places)


def of_sass(text: str) -> Lined:
    """Read what nvdisasm -g prints; the text is the one without its comments about lines."""
    lines, places = [], []
    now: list[tuple[str, int]] = []
    is_continued = False
    for line in text.splitlines():
        found = _SASS.search(line)
        if found is not None:
            now = [*now, (found[1], int(found[2]))] if is_continued else [(found[1], int(found[2]))]
            is_continued = found[3] is not None
            continue
        if line.startswith((".text", "\t.section", ".section")):
            now = []
        lines.append(re.sub(r"^\s+(/\*[0-9a-f]+\*/)\s+", r"\1  ", line))
        places.append(tuple(now) if "/*0" in line else ())
    return Lined("\n".join(lines) + "\n", places)
