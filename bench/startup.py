"""Import, first call and second call: ratios in one run.

    python bench/startup.py [--repeat N]

Import times are of fresh interpreters, alternating, medians, against `import numpy` (and `torch`
where it is installed). Calls are of the hello-world kernel on the current target.
"""

import argparse
import importlib.util
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

first = call()
rest = sorted(call() for _ in range(21))
print(imported - start, first, rest[10], cute.target_description(), sep="|")
"""


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
            times[name].append(seconds(f"import {name}" if name else "pass"))
    empty = statistics.median(times.pop(""))
    medians = {name: statistics.median(values) - empty for name, values in times.items()}
    ours = medians["basedsl_cute"]
    for name, value in medians.items():
        print(f"import {name:<14} {value * 1e3:8.1f} ms   basedsl_cute is {ours / value:5.2f} x")
    runs = []
    program = Path(tempfile.mkdtemp()) / "hello.py"
    program.write_text(HELLO)
    for _ in range(repeat):
        out = subprocess.run(
            [sys.executable, program], check=True, capture_output=True, text=True
        ).stdout
        runs.append(out.strip().splitlines()[-1].split("|"))
    first = statistics.median(float(run[1]) for run in runs)
    second = statistics.median(float(run[2]) for run in runs)
    print(f"target: {runs[0][3]}")
    print(f"hello world, first call  {first * 1e3:8.2f} ms")
    print(f"hello world, later call  {second * 1e3:8.3f} ms   first is {first / second:.0f} x")


if __name__ == "__main__":
    main()
