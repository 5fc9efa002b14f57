"""Other divisions of rows over threads, for the operations of `ops` that keep rows in registers.

    python bench/gpu/row_plans.py [--only TEXT ...]

`ops.layer.rows` gives each thread 64 bytes of a row, or more where a row is long. Here norms, their
gradients, softmax and top k run with a quarter, a half, twice and four times as many threads for a
row, and their kernels are timed by CUPTI, in us. "best" is the fastest of these by the chosen one:
what a tuner could gain.
"""

import argparse
import contextlib
from dataclasses import replace

import torch
from layer import backward, normal, on_the_device

from basedsl_cute import ops
from basedsl_cute.ops.layer import norm, softmax, topk

FACTORS = (1, 0.25, 0.5, 2, 4)
MODULES = (norm, softmax, topk)
MOST_THREADS = 1024


@contextlib.contextmanager
def threads_times(factor):
    """Give rows `factor` times as many threads."""
    plain = norm.row_plan

    def plan(*args):
        made = plain(*args)
        threads = int(made.threads * factor)
        if not (threads == 32 or 128 <= threads <= MOST_THREADS):
            raise ValueError("no such number of threads")
        rows = max(1, 128 // threads) if made.cluster == 1 else 1
        return replace(made, threads=threads, rows=rows)

    try:
        for module in MODULES:
            module.row_plan = plan
            module._plans.clear()
        yield
    finally:
        for module in MODULES:
            module.row_plan = plain
            module._plans.clear()


def cases():
    for rows, columns in ((32768, 1024), (8192, 4096), (4096, 8192), (4096, 16384), (1024, 65536)):
        x, grad = normal(rows, columns), normal(rows, columns)
        weight, bias = normal(columns), normal(columns)
        shape = f"{rows} x {columns}"
        yield f"rms_norm {shape}", ops.rms_norm, (x, weight)
        yield f"layer_norm {shape}", ops.layer_norm, (x, weight, bias)
        yield f"softmax {shape}", ops.softmax, (x,)
        if columns <= 16384:
            yield f"rms_norm backward {shape}", backward(ops.rms_norm, grad), (x, weight)
            yield f"layer_norm backward {shape}", backward(ops.layer_norm, grad), (x, weight, bias)
        yield f"softmax backward {shape}", backward(ops.softmax, grad), (x,)
        yield f"topk 50 {shape}", lambda x: ops.topk(x, 50), (x,)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[""])
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device here")
        return
    print(f"{'':<32}" + "".join(f"{f:>9}" for f in FACTORS) + "     best")
    for name, function, inputs in cases():
        if not any(text in name for text in options.only):
            continue
        found = []
        for factor in FACTORS:
            try:
                with threads_times(factor):
                    found.append(on_the_device(function, inputs))
            except ValueError:
                found.append(float("inf"))
        times = "".join(f"{took:9.1f}" for took in found)
        print(f"{name:<32}{times} {found[0] / min(found):8.3f}", flush=True)


if __name__ == "__main__":
    main()
