"""The time that threads or processes would save the simulator, were blocks run by several of them.

`python bench/simulator_cores.py` runs kernels of `bench/simulator.py` whose blocks touch nothing in
common, without the race check (its records are shared by all blocks), by the clock: the launch as
it is, and with the boxes of its blocks handed to as many threads as there are cores, where NumPy
gives up the GIL while it computes. A launch that is one box has nothing to hand out, so both
columns take boxes of an eighth of the grid. It prints the medians of alternating runs and their
ratio: above 1, threads save time.

Processes are forked for a launch, its arrays in memory that they share, and each runs half of the
blocks at once; beside it the launch as it is. Their column is processor time, the greater of
parent's (with the fork) and child's: what a launch would take on as many idle cores, whatever else
the machine does. Results that processes would have to hand back beside the arrays (what each block
printed, which words of memory it touched for the race check) are not counted.
"""

import argparse
import concurrent.futures
import functools
import mmap
import os
import resource
import statistics
import time

import numpy as np
import simulator as bench

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim import launch as launching
from basedsl_cute.sim.machine.lanes import lanes_of
from basedsl_cute.sim.machine.state import Block, Group

CORES = os.cpu_count() or 1
KERNELS = ("add", "scale", "softmax", "tiled product")


def run_boxes(pool):
    """Return what runs the blocks of a launch, on the threads of `pool` or on this one."""

    def run(launch, call, args, many):
        warps = -(-launch.threads // launch.machine.lanes)
        work, first = [], 0
        for corner, box in launching._boxes(launch.grid, launch.blocks, max(launch.blocks // 8, 1)):
            shape = lanes_of(launch.block, 0, launch.threads, box, launch.machine.lanes)
            work.append((corner, shape, first))
            first += shape.blocks

        def one(part):
            corner, shape, first = part
            shared = launching._shared_segment(launch, shape.blocks)
            block = Block(corner, first, launch.threads, warps, shared)
            with np.errstate(all="ignore"):
                call(Group(launch, shape, block, 0), *args)

        list((map if pool is None else pool.map)(one, work))

    return run


def run_forked(launch, call, args, many):
    """Run the blocks of a launch in this process and in one that is forked for it."""
    warps = -(-launch.threads // launch.machine.lanes)
    work, first = [], 0
    for corner, box in launching._boxes(launch.grid, launch.blocks, max(launch.blocks // 2, 1)):
        shape = lanes_of(launch.block, 0, launch.threads, box, launch.machine.lanes)
        work.append((corner, shape, first))
        first += shape.blocks
    child = os.fork()
    for corner, shape, first in work[child == 0 :: 2]:
        shared = launching._shared_segment(launch, shape.blocks)
        block = Block(corner, first, launch.threads, warps, shared)
        with np.errstate(all="ignore"):
            call(Group(launch, shape, block, 0), *args)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def in_shared_memory(value):
    """An array in memory that forked processes share, or a number as it is."""
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return from_dlpack(in_shared_memory(np.from_dlpack(value)))
    if not isinstance(value, np.ndarray):
        return value
    raw = mmap.mmap(-1, max(value.nbytes, 1))
    made = np.frombuffer(raw, value.dtype, value.size).reshape(value.shape)
    made[...] = value
    return made


def forked_seconds(call):
    """The processor time of the busier of two processes in a call."""
    parent = time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = sum(getattr(after, f) - getattr(children, f) for f in ("ru_utime", "ru_stime"))
    return max(time.process_time() - parent, spent)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=25)
    asked = parser.parse_args()
    head = f"| kernel | one thread | {CORES} threads | ratio |"
    print(f"{head} one process | two | ratio |\n|---|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        as_it_is, ways = launching._run_in_step, [run_boxes(None), run_boxes(pool)]
        for name, function, args, _ in bench.programs():
            if not name.startswith(KERNELS):
                continue
            compiled = cute.compile(function, *args, options="--check-races off")
            times = [[], []]
            for _ in range(asked.repeats + 2):
                for way, column in zip(ways, times, strict=True):
                    launching._run_in_step = way
                    column.append(
                        bench.seconds(lambda run=compiled, a=args: run(*a), time.perf_counter)
                    )
            one, several = (statistics.median(column[2:]) * 1e3 for column in times)
            line = f"| {name} | {one:.2f} ms | {several:.2f} ms | {one / several:.2f} |"
            shared = [in_shared_memory(arg) for arg in args]
            call = functools.partial(compiled, *shared)
            times = [[], []]
            for _ in range(asked.repeats + 2):
                launching._run_in_step = as_it_is
                times[0].append(bench.seconds(call, time.process_time))
                launching._run_in_step = run_forked
                times[1].append(forked_seconds(call))
            one, several = (min(column[2:]) * 1e3 for column in times)
            print(f"{line} {one:.2f} ms | {several:.2f} ms | {one / several:.2f} |", flush=True)


if __name__ == "__main__":
    main()
