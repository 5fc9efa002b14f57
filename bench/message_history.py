"""Names the commits that reworded the messages of the error programs, one for each changed line.

    python bench/message_history.py BASE NEW        # two commits of this repository

The messages are the files `tests/errors/programs/*.txt`, which a test compares with what the
programs print; each commit that changes what a program prints changes its file. A line of NEW that
BASE does not have belongs to the commit that `git blame` names; a message that only lost lines, to
the commits in which it did. Line numbers are left out of the comparison.

Told is for each commit its messages, with the first line that differs; the exit status is 1 if a
changed message has no commit after BASE.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MESSAGES = "tests/errors/programs"
_PLACE = re.compile(r"(\.py):\d+|^\d+(?= \|)", re.MULTILINE)


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def messages(commit: str) -> dict[str, str]:
    """Return the messages at a commit, by the names of their programs."""
    paths = git("ls-tree", "--name-only", commit, f"{MESSAGES}/").split()
    return {Path(p).stem: git("show", f"{commit}:{p}") for p in paths if p.endswith(".txt")}


def lines(message: str) -> list[str]:
    return _PLACE.sub(r"\1", message).splitlines()


def commits_of(name: str, before: str, after: str, base: str, new: str) -> dict[str, list[str]]:
    """Return the commits after `base` that made the lines of a message, each with these lines."""
    found: dict[str, list[str]] = defaultdict(list)
    path = f"{MESSAGES}/{name}.txt"
    blamed = git("blame", "-s", "-l", "--no-abbrev", f"{base}..{new}", "--", path).splitlines()
    old, now = lines(before), lines(after)
    for tag, _, _, first, last in difflib.SequenceMatcher(None, old, now, False).get_opcodes():
        for number in range(first, last) if tag in ("insert", "replace") else ():
            commit = blamed[number].split()[0]
            if not commit.startswith("^"):
                found[commit].append(now[number])
    if not found:  # lines were removed, and none are new
        commits = git("log", "--no-merges", "--format=%H", f"{base}..{new}", "--", path).split()
        for commit in commits:
            found[commit].append("(without) " + next(x for x in old if x not in now))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("new")
    given = parser.parse_args()
    before, after = messages(given.base), messages(given.new)
    changed = [
        name for name in sorted(before.keys() & after) if lines(before[name]) != lines(after[name])
    ]
    by_commit: dict[str, dict[str, str]] = defaultdict(dict)
    without = []
    for name in changed:
        found = commits_of(name, before[name], after[name], given.base, given.new)
        for commit, made in found.items():
            by_commit[commit][name] = made[0]
        if not found:
            without.append(name)
    for commit in git("rev-list", "--reverse", f"{given.base}..{given.new}").split():
        if commit in by_commit:
            print(f"\n{commit[:9]} {git('log', '-1', '--format=%s', commit).strip()}")
            for name, line in by_commit[commit].items():
                print(f"  {name}: {line.strip()[:110]}")
    moved = sum(before[name] != after[name] for name in before.keys() & after) - len(changed)
    gone = sorted(before.keys() - after)
    print(
        f"\n{len(before)} messages: {len(before) - len(changed) - moved - len(gone)} the same, "
        f"{moved} but for a line number, {len(changed)} reworded by {len(by_commit)} commits, "
        f"{len(gone)} gone {' '.join(gone)}; {len(without)} without a commit {' '.join(without)}"
    )
    return 1 if without else 0


if __name__ == "__main__":
    sys.exit(main())
