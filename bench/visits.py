"""Counts the files of the library that a call visits: the first three calls of a function of toy.

    python bench/visits.py [CHECKOUT ...]

In a new process of each checkout (this one if none is named), with an empty disk cache, and with
all modules compiled to bytecode by an earlier process, the calls of functions of the library's own
Python files are counted while `inc(5)` runs: how many there are, in how many files, and how often
one file follows another (transitions, from and to the program included). Modules that a call
imports count with their functions, not with their top level.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from same_code import environment_of

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import json, sys
import basedsl_toy as toy

root = sys.argv[1] + "/"

@toy.jit
def inc(x):
    return x + 1

def counted(argument):
    visited = []
    def profile(frame, event, _):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(root) and frame.f_code.co_name != "<module>":
            visited.append(name)
    sys.setprofile(profile)
    inc(argument)
    sys.setprofile(None)
    path = ["the program", *visited]
    transitions = sum(a != b for a, b in zip(path, path[1:]))
    return len(visited), len(set(visited)), transitions

print(json.dumps([counted(5), counted(6), counted(7)]))
"""


def visits(checkout: Path) -> list[tuple[int, int, int]]:
    """Return (calls, files, transitions) of the first three calls."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = environment_of(checkout, folder)
        program = folder / "program.py"
        program.write_text(PROGRAM)
        for attempt in ("first", "second"):  # the first writes bytecode
            environment["BASEDSL_CACHE_DIR"] = str(folder / attempt)
            done = subprocess.run(
                [sys.executable, str(program), str(checkout)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
        return [tuple(row) for row in json.loads(done.stdout)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT], metavar="CHECKOUT")
    for checkout in parser.parse_args().checkouts:
        print(checkout)
        for which, (calls, files, transitions) in zip(
            ("first", "second", "third"), visits(checkout.resolve()), strict=True
        ):
            print(
                f"  {which:6} call: {calls:5} calls, {files:3} files, {transitions:4} transitions"
            )


if __name__ == "__main__":
    main()
