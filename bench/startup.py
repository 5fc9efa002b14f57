"""Import, first call and second call: ratios in one run.

    python bench/startup.py [--repeat N]

Import times are of fresh interpreters, alternating, medians, against `import numpy` (and `torch`
where it is installed). Calls are of the hello-world kernel on the current target.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

HELLO = """
from time import perf_counter
start = perf_counter()
import basedsl_cute as cute
imported = perf_counter()

@cute.kernel
def kernel():
    tidx, _, _ = cute.arch.thread_idx()
    if tidx == 0:
        cute.printf("Hello world\\n")

@cute.jit
def host():
    kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))

def call():
    start = perf_counter()
    host()
    cute.synchronize()
    return perf_counter() - start

def build():
    start = perf_counter()
    cute.compile(host)
    return perf_counter() - start

first = call()
rest = sorted(call() for _ in range(21))
builds = sorted(build() for _ in range(7))
print(imported - start, first, rest[10], builds[3], cute.target_description(), sep="|")
"""


# The package loads when its first name is used: that is what importing it costs.
IMPORT = {"basedsl_cute": "import basedsl_cute; basedsl_cute.jit"}


def seconds(code):
    start = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    modules = ["basedsl_cute", "numpy", *(["torch"] if importlib.util.find_spec("torch") else [])]
    times = {name: [] for name in ["", *modules]}
    for _ in range(repeat):
        for name in times:
            times[name].append(seconds(IMPORT.get(name, f"import {name}") if name else "pass"))
    empty = statistics.median(times.pop(""))
    medians = {name: statistics.median(values) - empty for name, values in times.items()}
    ours = medians["basedsl_cute"]
    for name, value in medians.items():
        print(f"import {name:<14} {value * 1e3:8.1f} ms   basedsl_cute is {ours / value:5.2f} x")
    program = Path(tempfile.mkdtemp()) / "hello.py"
    program.write_text(HELLO)
    folder = tempfile.mkdtemp()
    cold, warm = [], []
    for _ in range(repeat):
        cold.append(run(program, BASEDSL_CACHE="0"))
        warm.append(run(program, BASEDSL_CACHE="1", BASEDSL_CACHE_DIR=folder))
    print(f"target: {cold[0][4]}")

    def median(runs, column):
        return statistics.median(float(fields[column]) for fields in runs) * 1e3

    first, second = median(cold, 1), median(cold, 2)
    print(f"hello world, first call      {first:8.2f} ms, everything compiled")
    print(f"hello world, first call      {median(warm[1:], 1):8.2f} ms, from the disk cache")
    print(f"hello world, later call      {second:8.4f} ms, the first is {first / second:.0f} x")
    print(f"hello world, cute.compile    {median(cold, 3):8.2f} ms, in a warm process")


def run(program, **variables):
    out = subprocess.run(
        [sys.executable, program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    ).stdout
    return out.strip().splitlines()[-1].split("|")


if __name__ == "__main__":
    main()
