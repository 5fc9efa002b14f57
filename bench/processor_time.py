"""Two checkouts in turns, by processor time: whole processes, tracing, compiling; and calls.

    python bench/processor_time.py BASE NEW [--rounds N] [--only WORD]

For machines where other programs run: the clock on the wall tells about these. Each round runs each
case once in a new process of each checkout, first one and then the other, and the next round the
other way round. Told are the medians of both, in milliseconds of processor time (user and system,
all threads), and the median of the ratios of the rounds, with their quartiles.

Starts are whole processes of `start_programs`, "compiled" with an empty disk cache and "loaded"
with a full one. A trace is that of 2,000 operations without control flow, a compilation that of 300
lines with loops and branches (toy), of examples of cute for sm_90a, ptxas included where there is
one: the least of several in a process. Bytecode is written before.

Calls are those of `calls.py`, of each checkout its own: the median of batches in a process, in
nanoseconds by the clock. They need a quiet core: `taskset -c 3 python bench/processor_time.py ...`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from same_code import environment_of

HEAD = """
import os, sys
from time import process_time
os.environ["BASEDSL_CACHE"] = "0"
"""
TOY = (
    HEAD
    + """
import linecache
import basedsl_toy as toy

def define(name, lines):
    text = f"def {name}(a, b, n):\\n" + "".join(f"    {line}\\n" for line in lines)
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    made = {}
    exec(compile(text, f"<{name}>", "exec"), made)
    return made[name]

if sys.argv[1] == "trace":
    lines = [f"a = a + b * {i % 7 + 2}" for i in range(1000)]
else:
    block = ["for i in range(n):", "    if i > b:", "        a += i", "    else:", "        b -= 1"]
    lines = (block + ["a = a + b * 2"] * 5) * 30
fn = define("straight", [*lines, "return a"])
took = []
for _ in range(4):
    start = process_time()
    compiled = toy.compile(toy.jit(fn), 1, 2, 3)
    took.append(process_time() - start)
print(min(took) * 1e3)
"""
)
CUTE = (
    HEAD
    + """
os.environ["CUTE_DSL_ARCH"] = "sm_90a"
import numpy as np
import basedsl_cute as cute

sys.path[:0] = [sys.argv[2], sys.argv[3]]
if sys.argv[1] == "norm":
    from normalization import layer_norm as function
    x = np.zeros((4, 256), np.float32)
    args = (x, x[0], x[0], np.empty_like(x), 1e-5, 256)
else:
    from softmax import softmax as function
    from basedsl_cute.runtime import from_dlpack
    args = [from_dlpack(np.zeros((64, 1024), np.float32), assumed_align=16) for _ in "xy"]
took = []
for _ in range(4):
    start = process_time()
    cute.compile(function, *args)
    took.append(process_time() - start)
print(min(took) * 1e3)
"""
)
CALLS = (
    HEAD
    + """
import json
sys.modules["numba"] = None  # the peer
sys.path.insert(0, sys.argv[2])
import calls

medians = calls.measure_calls(21)
empty = medians.pop("empty")
print(json.dumps({name: one - empty for name, one in medians.items()}))
"""
)


def cases() -> dict[str, tuple[str, str]]:
    """The kind and the name of each case."""
    starts = {
        f"{name}, {state}": (state, name)
        for name in ("toy_loops", "cute_layer_norm")
        for state in ("compiled", "loaded")
    }
    return starts | {
        "calls": ("calls", ""),
        "trace of 2,000 operations": ("toy", "trace"),
        "compilation of 300 lines": ("toy", "compile"),
        "compilation of a layer norm": ("cute", "norm"),
        "compilation of a softmax": ("cute", "softmax"),
    }


class Checkout:
    """A checkout, with the environment of its processes and their bytecode in `folder`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        folder.mkdir()
        self.environment = environment_of(root, folder) | {"CUTE_DSL_ARCH": "sim"}
        for kind, text in (("toy", TOY), ("cute", CUTE), ("calls", CALLS)):
            (folder / f"{kind}.py").write_text(text)

    def measure(self, case: str, kind: str, name: str) -> dict[str, float]:
        """Measure a case in one process; return the rows by name: several of calls, else one."""
        if kind in ("compiled", "loaded"):
            program = self.root / "bench" / "start_programs" / f"{name}.py"
            cache = self.folder / f"cache_{name}"
            with tempfile.TemporaryDirectory() as empty:
                folder = cache if kind == "loaded" else Path(empty)
                more = {"BASEDSL_CACHE": "1", "BASEDSL_CACHE_DIR": str(folder)}
                return {case: self._run([str(program)], more)[0]}
        if kind == "calls":
            text = self._run([str(self.folder / "calls.py"), name, str(self.root / "bench")], {})[1]
            found = json.loads(text.splitlines()[-1])
            return {f"call: {one}, ns": float(value) for one, value in found.items()}
        places = [str(self.root / "examples" / "cute"), str(self.root / "bench" / "start_programs")]
        printed = self._run([str(self.folder / f"{kind}.py"), name, *places], {})[1]
        return {case: float(printed.splitlines()[-1])}

    def _run(self, command: list[str], more: dict[str, str]) -> tuple[float, str]:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=self.environment | more,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} fails in {self.root}")
        return (usage.ru_utime + usage.ru_stime) * 1e3, printed


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains it")
    given = parser.parse_args()
    chosen = {name: case for name, case in cases().items() if given.only in name}
    with tempfile.TemporaryDirectory() as name:
        pair = [
            Checkout(path.resolve(), Path(name, side))
            for path, side in ((given.base, "base"), (given.new, "new"))
        ]
        for one, case in chosen.items():  # writes bytecode, fills caches
            for checkout in pair:
                checkout.measure(one, *case)
        taken: dict[str, list[list[float]]] = {}
        for turn in range(given.rounds):
            for one, case in chosen.items():
                for side in (0, 1) if turn % 2 == 0 else (1, 0):
                    for row, value in pair[side].measure(one, *case).items():
                        taken.setdefault(row, [[], []])[side].append(value)
    print(f"{'processor time, ms':<32} {'base':>8} {'new':>8}  ratio (quartiles)")
    for one, (base, new) in taken.items():
        if not base or not new:  # a call that one checkout's `calls.py` does not have
            continue
        ratios = [b / a for a, b in zip(base, new, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        medians = statistics.median(base), statistics.median(new)
        print(
            f"{one:<32} {medians[0]:8.1f} {medians[1]:8.1f}  {middle:.3f} ({low:.3f}, {high:.3f})"
        )


if __name__ == "__main__":
    main()
