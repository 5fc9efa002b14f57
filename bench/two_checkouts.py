"""The same benchmarks in two checkouts, in turns: is NEW slower?

    python bench/two_checkouts.py BASE NEW [--repeat N] [PROGRAM ...]

A PROGRAM is a file of `bench/` with its options, in quotes where there are any; each checkout runs
its own. After a run of the first that counts for nothing they take turns, the order swapped each
time. Told are all figures that a program prints and that vary, found by the words around them: the
medians and their ratio, and the ratio of the least, which other work on the machine disturbs less.
Figures whose medians and least both differ by more than 5 % are marked. All of them take
about 15 minutes on an idle machine of two cores; on a busy one nothing can be concluded.
"""

from __future__ import annotations

import argparse
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from same_code import environment_of

PROGRAMS = (
    "calls.py",  # with starts.py
    "compile.py --repeat 1 --no-growth",
    "startup.py --repeat 3",
    "trace.py",
)
TOLERANCE = 0.05
NUMBER = re.compile(r"(?<![\w.^])\d+(?:\.\d+)?(?![\w^])")

Figure = tuple[str, int, int]  # the line without its numbers, which such line, which number


def figures(output: str) -> dict[Figure, float]:
    """Every number that a program printed."""
    found: dict[Figure, float] = {}
    seen: Counter[str] = Counter()
    for line in output.splitlines():
        words = " ".join(NUMBER.sub("#", line).split())
        for at, number in enumerate(NUMBER.findall(line)):
            found[words, seen[words], at] = float(number)
        seen[words] += 1
    return found


def run(checkout: Path, program: str, environment: dict[str, str]) -> dict[Figure, float]:
    name, *options = shlex.split(program)
    done = subprocess.run(
        [sys.executable, str(checkout / "bench" / name), *options],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"bench/{program} fails in {checkout}:\n{done.stderr[-2000:]}")
    return figures(done.stdout)


def in_turns(
    checkouts: list[Path], environments: list[dict[str, str]], program: str, repeat: int
) -> list[dict[Figure, list[float]]]:
    """Run the program in both checkouts in turns; return the figures of each, run by run."""
    taken: list[dict[Figure, list[float]]] = [defaultdict(list), defaultdict(list)]
    for turn in range(repeat):
        for side in (1, 0) if turn % 2 else (0, 1):
            for figure, value in run(checkouts[side], program, environments[side]).items():
                taken[side][figure].append(value)
    return taken


def report(base: dict[Figure, list[float]], new: dict[Figure, list[float]]) -> int:
    """Print the figures, each with m.n: number n of the m-th such line. How many are marked."""
    marked = 0
    for figure in base:
        if figure not in new or len({*base[figure], *new[figure]}) == 1:
            continue
        middle = [statistics.median(one[figure]) for one in (base, new)]
        least = [min(one[figure]) for one in (base, new)]
        if not all((*middle, *least)):  # too short to be shown
            continue
        ratios = [b / a for a, b in (middle, least)]
        differs = all(abs(ratio - 1) > TOLERANCE for ratio in ratios)
        marked += differs
        words, line, at = figure
        print(
            f"{words[:62]:<62} {line + 1:2}.{at + 1} {middle[0]:10.4g} {middle[1]:10.4g}"
            f" {ratios[0]:7.3f} {ratios[1]:7.3f}{'  <--' if differs else ''}"
        )
    for title, one, other in (("only in BASE", base, new), ("only in NEW", new, base)):
        for words in dict.fromkeys(f[0] for f in one if f not in other):
            print(f"{title}: {words}")
    return marked


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("program", nargs="*", default=PROGRAMS)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each that count (3)")
    given = parser.parse_intermixed_args()
    checkouts = [given.base.resolve(), given.new.resolve()]
    with tempfile.TemporaryDirectory() as name:
        environments = []
        for checkout, side in zip(checkouts, ("base", "new"), strict=True):
            folder = Path(name, side)
            folder.mkdir()
            environments.append(environment_of(checkout, folder))
            run(checkout, given.program[0], environments[-1])  # for Python's bytecode
        for program in given.program:
            taken = in_turns(checkouts, environments, program, given.repeat)
            head = f"== bench/{program}"
            print(f"{head:<62}  m.n {'BASE':>10} {'NEW':>10} {'medians':>7} {'least':>7}")
            marked = report(*taken)
            print(f"{marked} marked\n", flush=True)


if __name__ == "__main__":
    main()
