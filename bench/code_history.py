"""Which commits changed the code that functions compile to? A bisection of many functions at once.

    python bench/same_code.py BASE NEW --record DIR     # which functions differ
    python bench/code_history.py DIR [--work DIR] [--only NAME ...]

In a worktree of its own, the programs that have a function in question (else the tests that have
it) are compiled at commits between the two, as by `same_code.py`, until for each function the
commits are found at which its texts change; merges are searched from within. Where a program does
not run at a commit, its neighbours are asked. Results are kept in the folder `--work`.

Told is for each commit which functions it changed, and what `code_changes.toml` says about it. The
exit status is 1 if a change is not in that file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import code_changes
import same_code

ROOT = Path(__file__).resolve().parents[1]
CHANGES = Path(__file__).with_name("code_changes.toml")
CONFORMANCE = "basedsl/conformance"

Function = tuple[str, str]  # DSL and symbol
State = frozenset[tuple[str, str]]  # role and digest of each text
Cause = tuple[str, bool]  # a commit, and whether its neighbours could not be run


def git(*arguments: str, cwd: Path = ROOT) -> str:
    command = ["git", "-C", str(cwd), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class History:
    """The states of functions at commits: found by running programs, kept in files of `work`."""

    def __init__(self, work: Path, roles: Sequence[str], jobs: int, rules: bool) -> None:
        self.work, self.roles, self.jobs, self.rules = work, roles, jobs, rules
        self.tree = work / "tree"
        self.known: dict[str, dict[Function, State | None]] = defaultdict(dict)
        work.mkdir(parents=True, exist_ok=True)
        for path in work.glob("*.json"):
            for dsl, symbol, texts in json.loads(path.read_text()):
                state = None if texts is None else frozenset((role, d) for role, d in texts)
                self.known[path.stem][dsl, symbol] = state
        if not self.tree.exists():
            git("worktree", "add", "--detach", str(self.tree), "HEAD")

    def states(self, commit: str, wanted: Iterable[Function]) -> dict[Function, State | None]:
        """Return the states of some functions; None for one that no program compiles."""
        commit = git("rev-parse", commit)
        known = self.known[commit]
        missing = {function for function in wanted if function not in known}
        if missing:
            self._run(commit, missing)
            for function in missing:
                known.setdefault(function, None)
            self._save(commit)
        return known

    def _save(self, commit: str) -> None:
        rows = [
            [dsl, symbol, None if state is None else sorted(state)]
            for (dsl, symbol), state in sorted(self.known[commit].items())
        ]
        (self.work / f"{commit}.json").write_text(json.dumps(rows))

    def _run(self, commit: str, wanted: set[Function]) -> None:
        git("checkout", "--quiet", "--detach", commit, cwd=self.tree)
        programs, tests, names = self._sources(wanted)
        print(
            f"{commit[:9]}: {len(programs)} programs, {len(tests)} files of tests, {len(names)} of"
            f" conformance, for {len(wanted)} functions",
            flush=True,
        )
        record = same_code.Record(commit)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            environment = same_code.recording(self.tree, folder)
            conformance = [CONFORMANCE, "-k", " or ".join(sorted(names))] if names else []
            for chosen in (conformance, tests):
                if chosen:
                    with contextlib.suppress(SystemExit):  # what does not even import
                        same_code.run_tests(self.tree, chosen, environment, self.jobs)
            with ThreadPoolExecutor(self.jobs) as pool:
                run = same_code.run_program
                list(pool.map(lambda path: run(self.tree, path, environment), programs))
            if (folder / "made").exists():
                record.add_processes(folder / "made")
        found: dict[Function, set[tuple[str, str]]] = defaultdict(set)
        for (dsl, symbol, role), digests in record.digests.items():
            if role not in self.roles or (dsl, symbol) not in wanted:
                continue
            if self.rules:
                read = code_changes.Reader(code_changes.RULES).digest
                digests = {read(record.texts[one]) for one in digests}
            found[dsl, symbol] |= {(role, digest) for digest in digests}
        for function in wanted & found.keys():
            self.known[commit][function] = frozenset(found[function])

    def _sources(self, wanted: set[Function]) -> tuple[list[Path], list[str], set[str]]:
        """Return the programs, the files of tests, and the names of conformance programs that
        define these functions.
        """
        programs = same_code.programs_of(self.tree)
        tests = [self.tree / name for name in same_code.tests_of(self.tree) if name != CONFORMANCE]
        cases = names_defined((self.tree / CONFORMANCE / "programs").glob("*.py"))
        of_programs, of_tests = names_defined(programs), names_defined(tests)
        chosen: set[Path] = set()
        names: set[str] = set()
        for dsl, symbol in wanted:
            plain = symbol.removeprefix(f"{dsl}_")
            if plain in cases:
                names.add(plain)
                continue
            for defined in (of_programs, of_tests):
                name = longest_name(plain, defined)
                if name:
                    chosen |= defined[name]
                    break
        files = [str(path.relative_to(self.tree)) for path in chosen if path not in programs]
        return [path for path in programs if path in chosen], sorted(files), names


def names_defined(paths: Iterable[Path]) -> dict[str, set[Path]]:
    """Return the files in which a name is that of a function or class."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        for name in re.findall(r"^\s*(?:def|class) (\w+)", path.read_text(encoding="utf-8"), re.M):
            found[name].add(path)
    return found


def longest_name(symbol: str, defined: dict[str, set[Path]]) -> str:
    """Return the outermost class or function of a symbol, such as "Scale" of "Scale_times"."""
    parts = symbol.split("_")
    names = ("_".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in defined), "")


# The search --------------------------------------------------------------------------------------

Ask = Callable[[str, Iterable[Function]], dict[Function, State | None]]


def causes(
    base: str, new: str, functions: set[Function], ask: Ask, suspects: Sequence[str] = ()
) -> dict[Function, list[Cause]]:
    """Return the commits after `base`, up to `new`, at which the state of a function changes.

    The `suspects`, in their order, are asked first: where they account for all that changed,
    nothing else is run.
    """
    found: dict[Function, list[Cause]] = defaultdict(list)
    reached = dict(ask(base, functions))  # the state of each, after the suspects so far
    for commit in suspects:
        before, after = ask(f"{commit}~", functions), ask(commit, functions)
        for one in functions:
            if before[one] != after[one] and before[one] == reached[one]:
                found[one].append((commit, False))
                reached[one] = after[one]
    last = ask(new, functions)
    for one in [one for one in found if reached[one] != last[one]]:
        del found[one]
    functions = functions - found.keys()

    def differing(before: str, after: str, among: set[Function]) -> set[Function]:
        a, b = ask(before, among), ask(after, among)
        return {one for one in among if a[one] != b[one]}

    def split(chain: Sequence[str], among: set[Function]) -> None:
        if not among:
            return
        if len(chain) == 2:
            inside(chain[0], chain[1], among)
            return
        middle = len(chain) // 2
        unknown = set(among)
        order = sorted(range(1, len(chain) - 1), key=lambda at: abs(at - middle))
        for at in order[:3]:
            states = ask(chain[at], unknown)
            usable = {one for one in unknown if states[one] is not None}
            unknown -= usable
            for part in (chain[: at + 1], chain[at:]):
                split(part, differing(part[0], part[-1], usable))
        for one in unknown:
            found[one].append((chain[-1], True))

    def inside(before: str, commit: str, among: set[Function]) -> None:
        """A commit changed these: for a merge, look at the branch that it merges."""
        parents = git("rev-list", "--parents", "-n1", commit).split()[1:]
        rest = among
        for other in parents:
            if other != before and git("merge-base", before, other) != other:
                start = git("merge-base", before, other)
                within = differing(start, other, rest)
                rest = rest - within
                walk(start, other, within)
        for one in rest:
            found[one].append((commit, False))

    def walk(start: str, end: str, among: set[Function]) -> None:
        if among:
            chain = git("rev-list", "--first-parent", "--reverse", f"{start}..{end}").split()
            split([start, *chain], among)

    walk(base, new, differing(base, new, functions))
    return found


def report(found: dict[Function, list[Cause]], changed: set[Function], same: int) -> int:
    """Print the causes; return for how many functions `code_changes.toml` lacks one."""
    known = tomllib.loads(CHANGES.read_text())["commits"]
    by_commit: dict[str, set[str]] = defaultdict(set)
    for (_, symbol), commits in found.items():
        for commit, is_rough in commits:
            by_commit[commit].add(symbol + ("?" if is_rough else ""))
    order = git("rev-list", "--topo-order", "--reverse", "HEAD").split()
    unexplained = {symbol for _, symbol in changed - found.keys()}
    for commit in sorted(by_commit, key=order.index):
        why = next((text for key, text in known.items() if commit.startswith(key)), None)
        symbols = sorted(by_commit[commit])
        if why is None:
            unexplained |= set(symbols)
            why = "UNEXPLAINED: " + git("log", "-1", "--format=%s", commit)
        print(f"\n{commit[:9]} {len(symbols):4} functions: {why}")
        print("   ", " ".join(symbols))
    if changed - found.keys():
        print("\nnot found again:", *sorted(symbol for _, symbol in changed - found.keys()))
    print(
        f"\n{same + len(changed)} functions: {same} equal byte for byte, "
        f"{len(changed) - len(unexplained)} changed by the commits above, {len(unexplained)}"
        " unexplained"
    )
    return len(unexplained)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("record", type=Path, help="the folder of same_code.py --record")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "code_history"))
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these functions")
    parser.add_argument(
        "--suspects", nargs="*", default=[], metavar="COMMIT", help="ask these first, in this order"
    )
    parser.add_argument(
        "--roles", nargs="*", default=same_code.ROLES, metavar="ROLE", help="these texts (all)"
    )
    parser.add_argument(
        "--rules", action="store_true", help="texts after the rules of code_changes.py"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    given = parser.parse_args()
    base, new = (
        same_code.Record.load(given.record / f"{name}.json.gz") for name in ("record", "new")
    )
    compared = same_code.compare(base, new)
    both = {key[:2] for key in base.digests} & {key[:2] for key in new.digests}
    changed = {key[:2] for key in compared.changed if key[2] in given.roles}
    wanted = {one for one in changed if not given.only or one[1] in given.only}
    roles = code_changes.COMPARED if given.rules else given.roles
    history = History(given.work.resolve(), roles, given.jobs, given.rules)
    found = causes(base.commit, new.commit, wanted, history.states, given.suspects)
    return 1 if report(found, wanted, len(both - changed)) else 0


if __name__ == "__main__":
    sys.exit(main())
