"""Copies into shared memory that an mbarrier orders, under compute-sanitizer's racecheck.

    python bench/gpu/racecheck_bulk.py [--only KIND ...] [--indirect]

Runs itself under racecheck, one process for each kind of kernel, and tells what racecheck says;
with `--indirect` under its option to follow what one thread waits for and another then arrives for.
The kernels do nothing but copy numbers by `cp.async.bulk` and read them by ordinary loads:

- `once`: one copy; each thread waits for its mbarrier and reads.
- `each`: many copies through two stages; each reading thread arrives at an mbarrier that the next
  copy into the stage waits for.
- `ring`: the same, but of each warp one thread arrives, behind `bar.warp.sync`.
- `led`: the same, but that thread reads the numbers of its warp, and gives them to the others.
- `fenced`: as `ring`, and a barrier of the block between reads and the next copy besides.
- `named`: as `ring`, and readers arrive at a named barrier (`bar.arrive`), where the warp that
  copies waits (`bar.sync`).
- `joined`: the same, but readers wait there too.
- `plain each` and `plain ring`: filled by a warp's ordinary stores, behind the same mbarriers.
- `async each` and `async ring`: filled by `cp.async` of a warp's threads, which arrive as their
  copies end.
- `unsynced ring`: `ring` without `bar.warp.sync`: the thread that arrives does not know that others
  have read.
- `wrong`: a copy that nobody waits for, which is a race.

All but the last two are right: what racecheck reports of them is a limit of the tool.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import cpasync

NUMBERS, STAGES, STEPS = 128, 2, 6  # numbers of a copy, one for each reading thread
VECTOR = 4  # numbers that a thread copies by one cp.async
INDIRECT = "--racecheck-indirect-barrier-dependency=yes"
KINDS = (
    "once", "each", "ring", "led", "fenced", "named", "joined", "plain each", "plain ring",
    "async ring", "async each", "unsynced ring", "wrong",
)  # fmt: skip


@cute.kernel
def single_kernel(source: cute.Tensor, result: cute.Tensor, waits: cute.Constexpr):
    thread = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(NUMBERS), 128)
    if thread == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32)
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(barrier, 4 * NUMBERS)
            cute.copy(bulk, vector(source, 0), vector(tile, 0), mbar_ptr=barrier)
    if cute.const_expr(waits):
        arch.mbarrier_wait(barrier, 0)
    result[thread] = tile[thread]


@cute.kernel
def ring_kernel(source: cute.Tensor, result: cute.Tensor, kind: cute.Constexpr):
    thread = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    full, empty = (smem.allocate_array(cute.Int64, STAGES) for _ in range(2))
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((NUMBERS, STAGES)), 128)
    is_bulk, arrives_each = kind.split()[0] not in ("plain", "async"), kind.endswith("each")
    if thread == 0:
        for i in range(STAGES):
            arch.mbarrier_init(full + i, 1 if is_bulk else arch.WARP_SIZE)
            arch.mbarrier_init(empty + i, NUMBERS if arrives_each else NUMBERS // arch.WARP_SIZE)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32)
    words = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
    total = cute.Float32(0.0)
    for step in cute.range_constexpr(STEPS):
        stage, phase = step % STAGES, step // STAGES % 2
        if thread >= NUMBERS:
            arch.mbarrier_wait(empty + stage, 1 - phase)
            if cute.const_expr(is_bulk):
                with arch.elect_one():
                    arch.mbarrier_arrive_and_expect_tx(full + stage, 4 * NUMBERS)
                    at = vector(source, step), vector(tile, stage)
                    cute.copy(bulk, *at, mbar_ptr=full + stage)
            elif cute.const_expr(kind.startswith("async")):
                own = (VECTOR,), (thread - NUMBERS,)
                at = vector(source, step), vector(tile, stage)
                cute.copy(words, *(cute.local_tile(x, *own) for x in at))
                arch.cp_async_mbarrier_arrive_noinc(full + stage)
            else:
                for i in range(thread - NUMBERS, NUMBERS, arch.WARP_SIZE):
                    tile[i, stage] = source[i, step]
                arch.mbarrier_arrive(full + stage)
        else:
            arch.mbarrier_wait(full + stage, phase)
            if cute.const_expr(kind == "led"):
                own = tile[None, stage]
                for i in cute.range_constexpr(arch.WARP_SIZE):
                    number = cute.Float32(0.0)
                    if thread % arch.WARP_SIZE == 0:
                        number = own[thread + i]
                    number = arch.shuffle_sync(number, 0)
                    total += cute.where(thread % arch.WARP_SIZE == i, number, 0.0)
            else:
                total += tile[thread, stage]
            if cute.const_expr(arrives_each):
                arch.mbarrier_arrive(empty + stage)
            else:
                if cute.const_expr(kind != "unsynced ring"):
                    arch.sync_warp()
                with arch.elect_one():
                    arch.mbarrier_arrive(empty + stage)
        if cute.const_expr(kind == "fenced"):
            arch.sync_threads()
        elif cute.const_expr(kind in ("named", "joined")):
            if thread < NUMBERS and kind == "named":
                arch.barrier_arrive(1 + stage, NUMBERS + arch.WARP_SIZE)
            elif thread < NUMBERS:
                arch.barrier(1 + stage, NUMBERS + arch.WARP_SIZE)
            elif step >= STAGES - 1:  # ahead of the next copy, what it overwrites has been read
                arch.barrier(1 + (step + 1) % STAGES, NUMBERS + arch.WARP_SIZE)
    if cute.const_expr(kind in ("named", "joined")):
        if thread >= NUMBERS:
            for step in cute.range_constexpr(STEPS, STEPS + STAGES - 1):
                arch.barrier(1 + (step + 1) % STAGES, NUMBERS + arch.WARP_SIZE)
    if thread < NUMBERS:
        result[thread] = total


def vector(x, column):
    """A column of numbers, aligned to 16 bytes."""
    start = x.iterator + column * NUMBERS
    return cute.make_tensor(start.align(16), cute.make_layout(NUMBERS))


@cute.jit
def launch(source: cute.Tensor, result: cute.Tensor, kind: cute.Constexpr):
    if cute.const_expr(kind in ("once", "wrong")):
        single_kernel(source, result, kind == "once").launch(grid=1, block=NUMBERS)
    else:
        threads = NUMBERS + arch.WARP_SIZE
        ring_kernel(source, result, kind).launch(grid=1, block=threads)


def run(kind):
    """Run a kernel, and compare what it read; a race may go well."""
    source = np.arange(NUMBERS * STEPS, dtype=np.float32).reshape(STEPS, NUMBERS).T
    result = np.zeros(NUMBERS, np.float32)
    launch(source, result, kind)
    if kind != "wrong":
        wanted = source[:, 0] if kind == "once" else source.sum(1)
        np.testing.assert_array_equal(result, wanted)
    print("the numbers are right" if kind != "wrong" else "run")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=KINDS, nargs="*", default=KINDS)
    parser.add_argument("--indirect", action="store_true")
    parser.add_argument("--run", choices=KINDS, help="run one kind here, without racecheck")
    given = parser.parse_args()
    if given.run:
        run(given.run)
        return 0
    if shutil.which("compute-sanitizer") is None:
        print("compute-sanitizer is not here; it comes with the CUDA toolkit")
        return 2
    command = ["compute-sanitizer", "--tool", "racecheck", "--racecheck-report", "all"]
    if given.indirect:
        command.append(INDIRECT)
    for kind in given.only:
        made = subprocess.run(
            [*command, sys.executable, __file__, "--run", kind],
            capture_output=True,
            text=True,
            check=False,
        )
        output = made.stdout + made.stderr
        found = re.search(r"RACECHECK SUMMARY: (.*)", output)
        lines = [line for line in output.splitlines() if re.search(r"hazard|Race|access", line)]
        right = "the numbers are right" if "are right" in output else f"exit {made.returncode}"
        print(f"{kind:13} {found[1] if found else 'no summary'}; {right}", flush=True)
        print("\n".join(f"    {line}" for line in lines[:3]), flush=True)
        if not found:
            print(output[-1500:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
