"""The time that threads would save the simulator, were blocks run by several of them.

`python bench/simulator_cores.py` runs kernels of `bench/simulator.py` whose blocks touch nothing in
common, without the race check (its records are shared by all blocks), by the clock: the launch as
it is, and with the boxes of its blocks handed to as many threads as there are cores, where NumPy
gives up the GIL while it computes. A launch that is one box has nothing to hand out, so both
columns take boxes of an eighth of the grid. It prints the medians of alternating runs and their
ratio: above 1, threads save time.
"""

import argparse
import concurrent.futures
import os
import statistics
import time

import numpy as np
import simulator as bench

import basedsl_cute as cute
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


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=25)
    asked = parser.parse_args()
    print(f"| kernel | one thread | {CORES} threads | ratio |\n|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        ways = [run_boxes(None), run_boxes(pool)]
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
            print(f"| {name} | {one:.2f} ms | {several:.2f} ms | {one / several:.2f} |", flush=True)


if __name__ == "__main__":
    main()
