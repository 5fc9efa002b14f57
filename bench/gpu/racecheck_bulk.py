"""Bulk copies into shared memory that an mbarrier orders, under compute-sanitizer's racecheck.

    python bench/gpu/racecheck_bulk.py [--only KIND]

Runs itself under racecheck, one process for each kind of kernel, and tells what racecheck says.
The kernels do nothing but copy numbers by `cp.async.bulk` and read them by ordinary loads:

- `once`: one copy; each thread waits for its mbarrier and reads.
- `ring`: many copies through two stages; each warp arrives, when its threads have read, at an
  mbarrier that the next copy into the stage waits for (`PipelineTmaAsync`).
- `fenced`: the ring, and a barrier of the block between reads and the next copy besides.
- `plain`: the ring, filled by a warp's ordinary stores, behind the same mbarriers.
- `wrong`: a copy that nobody waits for, which is a race.

If racecheck reports `once`, `ring` or `fenced` as it reports `wrong`, it does not know that an
mbarrier's bytes order a bulk copy before the loads behind the wait.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import cpasync

NUMBERS, STAGES, STEPS = 128, 2, 6  # numbers of a copy, one for each reading thread
KINDS = ("once", "ring", "fenced", "plain", "wrong")


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
def ring_kernel(
    source: cute.Tensor,
    result: cute.Tensor,
    is_fenced: cute.Constexpr,
    is_bulk: cute.Constexpr,
):
    thread = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * STAGES)
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((NUMBERS, STAGES)), 128)
    agents = pipeline.Agent.Thread
    readers = pipeline.CooperativeGroup(agents, NUMBERS // arch.WARP_SIZE)
    if cute.const_expr(is_bulk):
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=barriers,
            num_stages=STAGES,
            producer_group=pipeline.CooperativeGroup(agents),
            consumer_group=readers,
            tx_count=4 * NUMBERS,
        )
    else:
        pipe = pipeline.PipelineAsync.create(
            barrier_storage=barriers,
            num_stages=STAGES,
            producer_group=pipeline.CooperativeGroup(agents, arch.WARP_SIZE),
            consumer_group=pipeline.CooperativeGroup(agents, NUMBERS),
        )
    fill, read = pipe.make_participants()
    bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32)
    total = cute.Float32(0.0)
    for step in range(STEPS):
        if thread >= NUMBERS:
            stage = fill.acquire_and_advance()
            if cute.const_expr(is_bulk):
                with arch.elect_one():
                    cute.copy(
                        bulk,
                        vector(source, step),
                        vector(tile, stage.index),
                        mbar_ptr=stage.barrier,
                    )
            else:
                for i in range(thread - NUMBERS, NUMBERS, arch.WARP_SIZE):
                    tile[i, stage.index] = source[i, step]
                stage.commit()
        else:
            stage = read.wait_and_advance()
            total += tile[thread, stage.index]
            arch.sync_warp()
            stage.release()
        if cute.const_expr(is_fenced):
            arch.sync_threads()
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
        ring_kernel(source, result, kind == "fenced", kind != "plain").launch(grid=1, block=threads)


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
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--run", choices=KINDS, help="run one kind here, without racecheck")
    given = parser.parse_args()
    if given.run:
        run(given.run)
        return 0
    if shutil.which("compute-sanitizer") is None:
        print("compute-sanitizer is not here; it comes with the CUDA toolkit")
        return 2
    command = ["compute-sanitizer", "--tool", "racecheck", "--racecheck-report", "all"]
    for kind in [given.only] if given.only else KINDS:
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
        print(f"{kind:8} {found[1] if found else 'no summary'}; {right}", flush=True)
        print("\n".join(f"    {line}" for line in lines[:6]), flush=True)
        if not found:
            print(output[-1500:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
