"""Compares what is said of kernels without a GPU with what a GPU and its tools say.

    python bench/gpu/inspection.py [--out FOLDER]

- Events of one kernel from the GPU and from the simulator, side by side: the names that each warp
  recorded, in order. FOLDER gets both as files for ui.perfetto.dev.
- The occupancy of kernels against cuOccupancyMaxActiveBlocksPerMultiprocessor.
- The Python lines in reports of compute-sanitizer and Nsight Compute (ncu), where these are.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import basedsl_cute as cute
from basedsl_cute.device import driver

ROOT = Path(__file__).parents[2]
WRONG = ROOT / "tests" / "errors" / "programs" / "sim_out_of_bounds.py"
SAXPY = ROOT / "examples" / "cute" / "saxpy.py"
ARCH = "CUTE_DSL_ARCH"
ROUNDS = 6


@cute.struct
class Storage:
    barriers: cute.struct.MemRange[cute.Int64, 4]
    stages: cute.struct.MemRange[cute.Int32, 2]


@cute.kernel
def squares_kernel(y: cute.Tensor):
    """Warp 0 makes squares, warp 1 takes them: a pipeline of two stages."""
    storage = cute.utils.SmemAllocator().allocate(Storage)
    warp = cute.pipeline.CooperativeGroup(cute.pipeline.Agent.Warp)
    pipe = cute.pipeline.PipelineAsync.create(
        barrier_storage=storage.barriers.data_ptr(),
        num_stages=2,
        producer_group=warp,
        consumer_group=warp,
    )
    producer, consumer = pipe.make_participants()
    stages = storage.stages.get_tensor(cute.make_layout(2))
    if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
        for i in range(ROUNDS):
            handle = producer.acquire_and_advance()
            with cute.trace("make"), cute.arch.elect_one():
                stages[handle.index] = i * i
            handle.commit()
        producer.tail()
    else:
        for i in range(ROUNDS):
            handle = consumer.wait_and_advance()
            with cute.trace("take"):
                y[i] = stages[handle.index]
            handle.release()


@cute.jit
def squares(y: cute.Tensor):
    squares_kernel(y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def record(arch: str | None) -> cute.interop.events.Events:
    """The events of `squares` on an architecture, by default the GPU that is here."""
    os.environ.pop(ARCH, None)
    if arch is not None:
        os.environ[ARCH] = arch
    y = np.zeros(ROUNDS, np.int32)
    with cute.record_events() as events:
        squares(y)
    assert y.tolist() == [i * i for i in range(ROUNDS)], y
    return events


def traces(out: Path | None) -> bool:
    """Print the events of each warp from both; return True if the names are the same, in order."""
    both = {"simulator": record("sim")}
    if driver.is_available():
        both["GPU"] = record(None)
    names = {}
    for where, events in both.items():
        if out is not None:
            events.save(out / f"trace-{where.lower()}.json")
        for warp in (0, 1):
            of_warp = [one for one in events if one.warp == warp]
            names[where, warp] = [one.name for one in of_warp]
            took = of_warp[-1].end - of_warp[0].start
            print(f"  {where:9} warp {warp}: {len(of_warp)} events in {took} {events.unit}: "
                  f"{' '.join(names[where, warp][:6])} ...")  # fmt: skip
    if "GPU" not in both:
        print("  there is no GPU")
        return True
    return all(names["GPU", warp] == names["simulator", warp] for warp in (0, 1))


@cute.kernel
def holding_kernel(x: cute.Tensor, values: cute.Constexpr, words: cute.Constexpr):
    """Hold `values` numbers at a time, and `words` words of shared memory."""
    smem = cute.make_tensor(cute.arch.alloc_smem(cute.Int32, words), words)
    i = cute.arch.thread_idx()[0]
    smem[i % words] = i
    held = [x[i + n] for n in range(values)]
    cute.arch.sync_threads()
    total = held[0]
    for n in cute.range_constexpr(1, values):
        total = total * held[n] + held[n - 1]
    x[i] = total + smem[(i + 1) % words]


@cute.jit
def holding(x: cute.Tensor, values: cute.Constexpr, words: cute.Constexpr, threads: cute.Constexpr):
    holding_kernel(x, values, words).launch(grid=(1, 1, 1), block=(threads, 1, 1))


def occupancies() -> Iterator[tuple[str, int, int]]:
    """Twenty kernels: what each takes, its blocks on an SM as we say, and as the driver says."""
    os.environ.pop(ARCH, None)
    x = np.zeros(2048, np.float32)
    driver.ensure_context()
    for threads in (32, 96, 128, 384, 1024):
        for values, words in ((1, 16), (24, 2048), (60, 8192), (8, 12000)):
            compiled = cute.compile(holding, x, values, words, threads)
            (found,) = compiled.resources.values()
            library = driver.Library(compiled.__cubin__ or b"")
            said = library.kernel(found.name).active_blocks(threads, found.dynamic_smem)
            library.unload()
            smem = found.static_smem + found.dynamic_smem
            takes = f"{threads} threads, {found.registers} registers, {smem} bytes shared"
            yield takes, found.occupancy().blocks, said


def sanitizer() -> str | None:
    """The line of compute-sanitizer's report that names a Python line, for a wrong program."""
    command = ["compute-sanitizer", "--tool", "memcheck", sys.executable, str(WRONG)]
    env = {**os.environ, "CUTE_DSL_LINEINFO": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=60)
    lines = (done.stdout + done.stderr).splitlines()
    return next((line.strip("= ") for line in lines if f"{WRONG.name}:" in line), None)


def nsight() -> str:
    """A line of Nsight Compute's source page that has machine code of a Python line."""
    with tempfile.TemporaryDirectory() as folder:
        report = str(Path(folder) / "report")
        env = {**os.environ, "CUTE_DSL_LINEINFO": "1"}
        profile = ["ncu", "--section", "SourceCounters", "--import-source", "yes", "-o", report]
        done = subprocess.run(
            [*profile, sys.executable, str(SAXPY)],
            capture_output=True, text=True, check=False, env=env, timeout=90,
        )  # fmt: skip
        said = done.stdout + done.stderr
        if not Path(f"{report}.ncu-rep").exists():
            found = re.search(r"==ERROR== (.*)", said)
            return f"ncu made no report: {found[1] if found else said.strip()[-200:]}"
        show = ["ncu", "--import", f"{report}.ncu-rep", "--page", "source", "--csv"]
        for view in (["--print-source", "cuda,sass"], ["--view", "cuda,sass"], []):
            done = subprocess.run([*show, *view], capture_output=True, text=True, check=False)
            lines = [one for one in done.stdout.splitlines() if "alpha" in one or SAXPY.name in one]
            if lines:
                return "\n    ".join(line[:160] for line in lines[:4])
        return f"no Python line in the report: {(done.stdout + done.stderr)[:300]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the folder for traces")
    given = parser.parse_args()
    print("events")
    same = traces(given.out)
    print(f"  the same names in the same order: {same}")
    if not driver.is_available():
        return 0 if same else 1
    print("blocks of an SM: ours, the driver's")
    rows = list(occupancies())
    for takes, ours, said in rows:
        print(f"  {takes}: {ours}, {said}{'' if ours == said else '  DIFFERENT'}")
    equal = sum(ours == said for _, ours, said in rows)
    print(f"  {equal} of {len(rows)} equal")
    for tool, ask in (("compute-sanitizer", sanitizer), ("ncu", nsight)):
        found = ask() if shutil.which(tool) else "is not here"
        print(f"{tool}\n    {found}")
    return 0 if same and equal == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
