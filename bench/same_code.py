"""Do two checkouts compile the same code? MLIR and PTX, byte for byte.

    python bench/same_code.py BASE NEW [--record DIR] [--rename OLD=NEW ...]

In each checkout it runs the conformance programs on their three DSLs, the examples, the programs
under `tests/cute/programs`, and the tests of files that name an architecture of a GPU. A plugin
(`stage_record.py`) keeps what each compilation makes: the traced module, the modules that something
else is made from, PTX, and the host's LLVM IR. Texts are known by the DSL, the function's symbol
and what they are, not by the test or module they come from, which may move; a test that is renamed
shows as missing and new. How often a text was made does not count. No GPU is needed: examples and
programs run on the simulator, and what they call is compiled for sm_90a as well, as far as PTX.

Told are texts that changed (the first of each function, with a part of the difference), that are
missing and that are new, and which of the messages kept under `tests/errors/programs` differ. The
exit status is 1 if a text changed or is missing, or if a program fails in NEW alone. Texts that are
the same once OLD is replaced by NEW are counted apart, and do not make it 1. With `--record`, what
BASE made is kept in DIR, and later comparisons run only NEW; `--again` not even that. It takes 4
minutes of processor time for each checkout. With `--explain`, differences are explained by the
changes on purpose that `code_changes.py` and `code_changes.toml` know, and count only if they are
not.

Left out, or made equal:
- What assertions say is compared apart from the code, and may differ: messages are reworded. In the
  host's code they carry the lines of the program, and of pytest, that led to them, and their
  constants are numbered through all of a process: neither is compared.
- File and line in the names of shared memory.
- Locations of MLIR are not printed: they carry paths, and lines that an edited import moves.
- Random tests of Hypothesis take the same examples each time; of the random conformance programs
  the first few are run, whose seeds are their numbers.
- Tests that run on the simulator (the fixtures `sim` and `target`) or are marked `slow` take too
  long; those marked `gpu` need one. `tests/errors` are started in processes of their own.
- Binary outputs, as the simulator's programs, which are pickles and name modules.
- The disk cache is off, and nothing is written into a checkout.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import code_changes

PLUGIN = Path(__file__).with_name("stage_record.py")
PROGRAMS = ("examples/cute", "examples/toy", "tests/cute/programs")
MESSAGES = "tests/errors/programs"
NAMES_AN_ARCHITECTURE = re.compile(r"\bsm_\d+")
WITHOUT = {"errors", "install", "docs", "bench", "programs"}  # folders of tests
RANDOM_PROGRAMS = 25
ROLES = ("traced", "lowered", "ptx", "llvmir", "entry")  # in the order in which they are made
TOLD = "messages"  # a role that may change

Key = tuple[str, str, str]  # DSL, symbol of the function, role


@dataclass
class Record:
    """The record of a checkout. `texts` are by digest; `failed` are programs and tests."""

    commit: str
    digests: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    texts: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        listed = [[*key, sorted(found)] for key, found in sorted(self.digests.items())]
        partial = path.with_suffix(".partial")
        with gzip.open(partial, "wt", compresslevel=3) as file:
            json.dump({**vars(self), "digests": listed}, file)
        partial.replace(path)

    def add_processes(self, folder: Path) -> None:
        """Read the files that `stage_record.py` wrote, one for each process."""
        for path in folder.iterdir():
            with gzip.open(path, "rt") as file:
                one = json.load(file)
            for dsl, symbol, role, digest in one["made"]:
                self.digests[dsl, symbol, role].add(digest)
            self.texts.update(one["texts"])

    @classmethod
    def load(cls, path: Path) -> Record:
        with gzip.open(path, "rt") as file:
            kept = json.load(file)
        digests = {(dsl, symbol, role): set(d) for dsl, symbol, role, d in kept.pop("digests")}
        return cls(**kept, digests=digests)


# Making a record ---------------------------------------------------------------------------------


def record(checkout: Path, jobs: int, quick: bool) -> Record:
    """Run everything in a checkout, or the programs alone."""
    made = Record(commit_of(checkout))
    for path in (checkout / MESSAGES).glob("*.txt"):
        made.messages[path.stem] = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = recording(checkout, folder)
        if not quick:
            made.failed += run_tests(checkout, tests_of(checkout), environment, jobs)
        with ThreadPoolExecutor(jobs) as pool:
            outcomes = pool.map(
                lambda path: run_program(checkout, path, environment), programs_of(checkout)
            )
            made.failed += [one for one in outcomes if one]
        made.add_processes(folder / "made")
    return made


def commit_of(checkout: Path) -> str:
    """The commit, with a mark if files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def recording(checkout: Path, folder: Path) -> dict[str, str]:
    """The environment in which processes record, each in a file of `folder / "made"`."""
    environment = environment_of(checkout, folder) | {
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
        "BASEDSL_CACHE": "0",
        "CUTE_DSL_ARCH": "sim",
        "SAME_CODE_RECORD": str(folder / "made"),
    }
    shutil.copy(PLUGIN, folder / "path")
    (folder / "made").mkdir()
    return environment


def environment_of(checkout: Path, folder: Path) -> dict[str, str]:
    """Python finds the packages of the checkout, and the entry points they have in it: those of an
    installed checkout may be others. Bytecode goes to `folder`.
    """
    first = folder / "path"
    first.mkdir()
    roots = [checkout, checkout / "plugins" / "toy", checkout / "plugins" / "cute"]
    for root in roots:
        write_metadata(tomllib.loads((root / "pyproject.toml").read_text())["project"], first)
    elsewhere = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # may have what we depend on
    dropped = ("BASEDSL_", "CUTE_DSL_", "TOY_", "PYTEST_", "PYTHONDONTWRITE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, map(str, (first, *roots, *elsewhere)))),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }


def write_metadata(project: dict[str, object], folder: Path) -> None:
    name, version = str(project["name"]), str(project["version"])
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = project.get("entry-points", {})
    assert isinstance(points, dict)
    lines: list[str] = []
    for group, entries in points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def tests_of(checkout: Path) -> list[str]:
    """List the tests to run: the conformance programs, and files that name an architecture."""
    found = []
    config = tomllib.loads((checkout / "pyproject.toml").read_text())
    for name in config["tool"]["pytest"]["ini_options"]["testpaths"]:
        if name != "tests":
            found.append(name)
            continue
        for path in sorted((checkout / name).rglob("test_*.py")):
            inside = path.relative_to(checkout)
            named = NAMES_AN_ARCHITECTURE.search(path.read_text(encoding="utf-8"))
            if named and not WITHOUT & set(inside.parts):
                found.append(str(inside))
    return found


def run_tests(checkout: Path, tests: list[str], env: dict[str, str], jobs: int) -> list[str]:
    """The names of tests that fail. Each file's tests run in one process, in their order."""
    options = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-p", PLUGIN.stem]
    options += ["-n", str(jobs), "--dist", "loadfile", fuzz_option(checkout), str(RANDOM_PROGRAMS)]
    options += ["-p", "no:randomly", "-p", "no:benchmark", "--hypothesis-seed=0"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(
        command, cwd=checkout, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest does not run in {checkout}:\n{done.stdout[-4000:]}")
    lines = done.stdout.splitlines()
    print(f"  {lines[-1]}", flush=True)
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return [re.sub(r"\S*/(\w+\.py)", r"\1", line.partition(" - ")[0]) for line in failed]


def fuzz_option(checkout: Path) -> str:
    """The option of pytest for the number of random programs: it had a shorter name once."""
    plugins = (checkout / "basedsl_pytest.py", checkout / "basedsl" / "conformance" / "plugin.py")
    texts = (path.read_text(encoding="utf-8") for path in plugins if path.exists())
    return "--basedsl-fuzz" if any('"--basedsl-fuzz"' in text for text in texts) else "--fuzz"


def programs_of(checkout: Path) -> list[Path]:
    found = [path for folder in PROGRAMS for path in (checkout / folder).glob("*.py")]
    return sorted(path for path in found if not path.stem.startswith(("test_", "_")))


def run_program(checkout: Path, program: Path, env: dict[str, str]) -> str:
    """Run a program; return the failure as a line, "" if there is none."""
    plugin = Path(env["PYTHONPATH"].partition(os.pathsep)[0], PLUGIN.name)
    done = subprocess.run(
        [sys.executable, str(plugin), str(program)],
        cwd=checkout,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode == 0:
        return ""
    last = (done.stdout.splitlines() or [f"status {done.returncode}"])[-1]
    return f"FAILED {program.relative_to(checkout)} - {last}"


# Comparing ---------------------------------------------------------------------------------------


@dataclass
class Comparison:
    """By key: how many are the same, or the same but for names; pairs of digests that changed into
    each other; and what has no partner.
    """

    same: dict[Key, int]
    renamed: dict[Key, int]
    changed: dict[Key, list[tuple[str, str]]]
    missing: dict[Key, list[str]]
    new: dict[Key, list[str]]


def compare(base: Record, new: Record, renames: Sequence[tuple[str, str]] = ()) -> Comparison:
    found = Comparison({}, {}, {}, {}, {})
    for key in sorted({*base.digests, *new.digests}):
        before, after = base.digests.get(key, set()), new.digests.get(key, set())
        found.same[key] = len(before & after)
        gone, come = sorted(before - after), sorted(after - before)
        by_text = {new.texts[digest]: digest for digest in come}
        known = [(digest, renamed(base.texts[digest], renames)) for digest in gone]
        as_named = [(digest, by_text[text]) for digest, text in known if text in by_text]
        found.renamed[key] = len(as_named)
        for pair in as_named:
            gone.remove(pair[0])
            if pair[1] in come:
                come.remove(pair[1])
        pairs = []
        while gone and come:
            first = set(base.texts[gone[0]].splitlines())
            like = max(come, key=lambda digest: len(first & set(new.texts[digest].splitlines())))
            pairs.append((gone.pop(0), like))
            come.remove(like)
        for kind, value in ((found.changed, pairs), (found.missing, gone), (found.new, come)):
            if value:
                kind[key] = value  # type: ignore[index]
    return found


def renamed(text: str, renames: Sequence[tuple[str, str]]) -> str:
    for old, new in renames:
        text = text.replace(old, new)
    return text


def report(
    base: Record,
    new: Record,
    show: int = 10,
    lines: int = 16,
    renames: Sequence[tuple[str, str]] = (),
) -> bool:
    """Print it; whether code is the same."""
    found = compare(base, new, renames)
    columns = ("same", "renamed", "changed", "missing", "new")
    print(f"\n{'':<18}" + "".join(f"{name:>9}" for name in columns))
    of_roles = {(dsl, role) for dsl, _, role in found.same}
    for dsl, role in sorted(of_roles, key=lambda one: (one[0], order(one[1]))):
        mine = [key for key in found.same if (key[0], key[2]) == (dsl, role)]
        counts = [sum(one[key] for key in mine) for one in (found.same, found.renamed)]
        for kind in (found.changed, found.missing, found.new):
            counts.append(sum(len(kind.get(key, ())) for key in mine))
        print(f"{dsl:<8} {role:<9}" + "".join(f"{count:9}" for count in counts))
    show_changes(base, new, found, show, lines)
    for name, kind in (("missing", found.missing), ("new", found.new)):
        show_names(name, [key for key in kind if key[2] != TOLD], show)
    show_messages(base.messages, new.messages, show, lines)
    worse = sorted(set(new.failed) - set(base.failed))
    for title, failed in (("fail in both", set(base.failed) - set(worse)), ("fail now", worse)):
        if failed:
            print(f"\n{title}:", *sorted(failed), sep="\n  ")
    differs = any(key[2] != TOLD for key in (*found.changed, *found.missing))
    return not (differs or worse)


def order(role: str) -> tuple[int, str]:
    return (ROLES.index(role) if role in ROLES else len(ROLES)), role


def show_changes(base: Record, new: Record, found: Comparison, show: int, lines: int) -> None:
    """The first text of each function that changed: the others follow from it."""
    firsts: dict[tuple[str, str], Key] = {}
    for key in sorted(found.changed, key=lambda key: order(key[2])):
        firsts.setdefault(key[:2], key)
    if firsts:
        print(f"\n{len(firsts)} functions changed", end="")
        print(f"; the first {show}:" if len(firsts) > show else ":")
    for key in sorted(firsts.values())[:show]:
        (before, after), *more = found.changed[key]
        print(f"\n{' '.join(key)}" + (f", and {len(more)} more like it" if more else ""))
        show_difference(base.texts[before], new.texts[after], lines)


def show_difference(before: str, after: str, most: int) -> None:
    difference = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    shown = list(difference)[2:]
    for line in shown[:most]:
        print("  " + line[:160])
    if len(shown) > most:
        print(f"  ... {len(shown) - most} more lines")


def show_names(title: str, keys: Iterable[Key], show: int) -> None:
    functions = sorted({f"{dsl} {symbol}" for dsl, symbol, _ in keys})
    if functions:
        more = f"; the first {show}" if len(functions) > show else ""
        print(f"\n{title}, of {len(functions)} functions{more}:", *functions[:show], sep="\n  ")


def show_messages(base: dict[str, str], new: dict[str, str], show: int, lines: int) -> None:
    """Messages are told, and may differ."""
    both = sorted(base.keys() & new.keys())
    changed = [name for name in both if base[name] != new[name]]
    print(f"\nmessages of errors: {len(both) - len(changed)} same, {len(changed)} changed", end="")
    print(f", {len(base.keys() - new.keys())} missing, {len(new.keys() - base.keys())} new")
    for name in changed[:show]:
        print(f"\n{name}")
        show_difference(base[name], new[name], lines)
    if len(changed) > show:
        print("\nand", *changed[show:])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep what BASE made here")
    parser.add_argument("--quick", action="store_true", help="examples and programs, no tests")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    parser.add_argument(
        "--rename", action="append", default=[], metavar="OLD=NEW", help="a name changed on purpose"
    )
    parser.add_argument(
        "--explain", action="store_true", help="by changes on purpose: see code_changes.py"
    )
    parser.add_argument("--again", action="store_true", help="report on the last run of NEW again")
    parser.add_argument("--show", type=int, default=10, help="how many functions (10)")
    parser.add_argument("--lines", type=int, default=16, help="lines of a difference (16)")
    given = parser.parse_args()
    base = record_of(given.base.resolve(), given.record, given.jobs, given.quick)
    kept = given.record and given.record / "new.json.gz"
    if given.again:
        if not kept or not kept.exists():
            parser.error("--again takes the folder of an earlier run: --record DIR")
        new = Record.load(kept)
    else:
        print(f"running {given.new}", flush=True)
        new = record(given.new.resolve(), given.jobs, given.quick)
        if kept:
            new.save(kept)
    renames = [tuple(one.split("=", 1)) for one in given.rename]
    same = report(base, new, given.show, given.lines, renames)
    if not same and given.explain:
        print("\ndifferences explained:")
        same = code_changes.report(base, new) == 0
    print("\nthe code is the same" if same else "\nTHE CODE IS NOT THE SAME")
    return 0 if same else 1


def record_of(checkout: Path, folder: Path | None, jobs: int, quick: bool) -> Record:
    """The record kept in `folder`, if it is of this commit; else it is made."""
    path = None if folder is None else folder / ("quick.json.gz" if quick else "record.json.gz")
    if path is not None and path.exists():
        kept = Record.load(path)
        if kept.commit == commit_of(checkout):
            print(f"what {checkout} made is in {path}")
            return kept
    print(f"running {checkout}", flush=True)
    made = record(checkout, jobs, quick)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.save(path)
    return made


if __name__ == "__main__":
    sys.exit(main())
