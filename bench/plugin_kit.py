"""The kit for authors of DSLs is timed against another checkout, in turns, in new processes.

python bench/plugin_kit.py --base ../other-checkout [--rounds 9] [--instructions]

Prints, as JSON: lines of code of each chapter of docs/plugins,
the import of `basedsl` (processor time), tracing, compiling and calling functions of toy (the best
of each process; medians over processes, and of the ratios to the base in the same turn).
With `--instructions` it counts them by valgrind's cachegrind instead, which other work on the
machine does not disturb: of a process that does nothing but import toy, and of each further
compilation (trace included) and call, from the difference of two processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

IMPORT = """
from time import process_time
start = process_time()
import basedsl
took = process_time() - start
import sys
loaded = [name for name in sys.modules if "mlir" in name.split(".")[0] or name == "llvmlite"]
print({"import_ms": took * 1e3, "mlir_modules": len(loaded)})
"""

TOY = """
import os
os.environ["BASEDSL_CACHE"] = "0"
from time import perf_counter
import numpy as np
import basedsl_toy as toy

def work(a, n):
    total = 0.0
    for i in range(n):
        if i % 3 == 0 and a[i % 8] > 0.5:
            total += a[i % 8] * i
        else:
            total -= a[(i + 1) % 8] / (i + 1)
        j = 0
        while j < i % 5:
            total += j
            j += 1
    return total, n * 2

f = toy.jit(work)
a = np.linspace(0, 1, 8)
f(a, 10)
found = {"trace_ms": [], "compile_ms": []}
for _ in range(30):
    start = perf_counter()
    compiled = toy.compile(f, a, 10)
    found["compile_ms"].append((perf_counter() - start) * 1e3)
    found["trace_ms"].append(compiled.seconds["trace"] * 1e3)
add = toy.jit(lambda x, y: x + y)
for _ in range(3):
    add(1, 2)
    f(a, 1)

def per_call(call, count=20000):
    best = []
    for _ in range(7):
        start = perf_counter()
        for _ in range(count):
            call()
        best.append((perf_counter() - start) / count * 1e9)
    return best

found["call_ns"] = per_call(lambda: add(1, 2))
found["call_array_ns"] = per_call(lambda: f(a, 1))
print({name: min(values) for name, values in found.items()})
"""

COUNTED = (
    """
import os, sys
os.environ["BASEDSL_CACHE"] = "0"
import numpy as np
import basedsl_toy as toy
"""
    + TOY[TOY.index("def work") : TOY.index("f(a, 10)")]
    + """
add = toy.jit(lambda x, y: x + y)
f(a, 1), add(1, 2)
what, count = sys.argv[1], int(sys.argv[2])
for _ in range(count):
    if what == "compile":
        toy.compile(f, a, 10)
    elif what == "call":
        add(1, 2)
    else:
        f(a, 1)
"""
)
COUNTS = {"compile": (2, 7), "call": (1000, 11000), "call_array": (1000, 11000)}


def count(checkout: Path) -> dict[str, float]:
    """Count instructions of toy in a checkout: of an import, and of one compilation and call."""
    parts = [checkout, checkout / "plugins" / "toy"]
    with tempfile.TemporaryDirectory() as folder:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPATH"] = os.pathsep.join(map(str, parts))
        env |= {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "PYTHONHASHSEED": "0"}
        program, imports = Path(folder, "counted.py"), Path(folder, "imports.py")
        program.write_text(COUNTED)
        imports.write_text("import basedsl_toy as toy\ntoy.jit\n")
        valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no"]
        valgrind.append(f"--cachegrind-out-file={folder}/out")

        def instructions(*command: str | Path) -> int:
            run = [*valgrind, sys.executable, *command]
            done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
            found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
            assert found is not None, done.stderr
            return int(found[1].replace(",", ""))

        for warm in ([imports], [program, "compile", "1"]):  # writes the bytecode
            subprocess.run([sys.executable, *warm], env=env, check=True)
        result: dict[str, float] = {"import": instructions(imports)}
        for what, (few, many) in COUNTS.items():
            more, less = (instructions(program, what, str(n)) for n in (many, few))
            result[what] = (more - less) / (many - few)
        return result


def measured(program: str, checkout: Path) -> dict[str, float]:
    """Run a program with the packages of a checkout; return what it prints."""
    parts = [checkout, checkout / "plugins" / "toy"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, parts))}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # its functions have a source
        file.write(program)
        file.flush()
        done = subprocess.run(
            [sys.executable, file.name], env=env, capture_output=True, text=True, check=True
        )
    found: dict[str, float] = eval(done.stdout)
    return found


def chapters() -> dict[str, int]:
    """Lines of code of each chapter, blank lines and comments left out."""
    found = {}
    for page in sorted((ROOT / "docs" / "plugins").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        code = "".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
        lines = [line.strip() for line in code.splitlines()]
        found[page.stem] = sum(bool(line) and not line.startswith("#") for line in lines)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="the checkout to compare with")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--instructions", action="store_true", help="by cachegrind")
    parsed = parser.parse_args()
    if parsed.instructions:
        if shutil.which("valgrind") is None:
            parser.error("--instructions needs valgrind")
        here, base = count(ROOT), count(parsed.base)
        report = {"here": here, "base": base, "ratios": {n: here[n] / base[n] for n in base}}
        print(json.dumps(report, indent=1))
        return
    runs: dict[str, dict[str, list[float]]] = {"here": {}, "base": {}}
    for turn in range(parsed.rounds):
        sides = [("here", ROOT), ("base", parsed.base)]
        for side, checkout in sides if turn % 2 else sides[::-1]:
            for program in (IMPORT, TOY):
                for name, value in measured(program, checkout).items():
                    runs[side].setdefault(name, []).append(value)
    medians = {
        side: {name: statistics.median(values) for name, values in found.items()}
        for side, found in runs.items()
    }
    ratios = {
        name: statistics.median(a / b for a, b in zip(runs["here"][name], values, strict=True))
        for name, values in runs["base"].items()
        if all(values)
    }
    report = {"chapters": chapters(), **medians, "ratios": ratios, "rounds": parsed.rounds}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
