"""Other divisions of rows over threads, for the operations of `ops` that keep rows in registers.

    python bench/gpu/row_plans.py [--only TEXT ...] [--seconds 45] [--workers 16]

`ops.layer.rows` gives each thread 64 bytes of a row, or more where a row is long. Here norms, their
gradients, softmax and top k run with a quarter, a half, twice and four times as many threads for a
row, and their kernels are timed by CUPTI, in us. "best" is the fastest of these by the chosen one:
what a tuner could gain. Kernels are compiled before, by processes that share the cache on disk,
for half of the seconds at most.
"""

import argparse
import contextlib
import itertools
import os
import time
from dataclasses import replace

import torch
from compile_ahead import compile_all
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


def timed(function, inputs, factor, measure):
    """Measure a call with `factor` times as many threads; None where there is no such plan."""
    try:
        with threads_times(factor):
            return measure(function, inputs)
    except ValueError:
        return None


def compile_some(every, first, step):
    """Compile a share of the kernels, by a call of each."""
    share = itertools.islice(itertools.product(every, FACTORS), first, None, step)
    for (_, function, inputs), factor in share:
        timed(function, inputs, factor, lambda function, inputs: function(*inputs))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--seconds", type=float, default=45, help="begin no row after")
    parser.add_argument("--workers", type=int, default=min(16, os.cpu_count() or 1))
    parser.add_argument("--compile", nargs=2, type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    begin, options = time.time(), arguments()
    if not torch.cuda.is_available():
        print("no CUDA device here")
        return
    every = (case for case in cases() if any(text in case[0] for text in options.only))
    if options.compile:
        compile_some(every, *options.compile)
        return
    compile_all(options.workers, options.seconds / 2)
    print(f"compiled after {time.time() - begin:.0f} s")
    print(f"{'':<32}" + "".join(f"{f:>9}" for f in FACTORS) + "     best")
    gains = []
    for name, function, inputs in every:
        if time.time() - begin > options.seconds:
            print(f"no time for the others after {options.seconds:.0f} s")
            break
        found = [timed(function, inputs, factor, on_the_device) for factor in FACTORS]
        found = [float("inf") if took is None else took for took in found]
        gains.append((found[0] / min(found), name))
        times = "".join(f"{took:9.1f}" for took in found)
        print(f"{name:<32}{times} {gains[-1][0]:8.3f}", flush=True)
    if gains:
        print(
            f"{len(gains)} rows, the most that others gain: {max(gains)[0]:.3f} ({max(gains)[1]})"
        )


if __name__ == "__main__":
    main()
