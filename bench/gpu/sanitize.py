"""compute-sanitizer's memcheck and racecheck on one configuration of each kernel.

    python bench/gpu/sanitize.py [--jobs 8] [--only NAME ...] [--seconds 240]

Matrix products run as `random_configurations.py --only`, which compares them with float64 too;
attention as its tests; other kernels as their examples. Prints a row for each run; fails where the
sanitizer finds something or a run does not end well.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
RANDOM = ROOT / "tests" / "cute" / "hopper" / "random_configurations.py"
EXAMPLES = ROOT / "examples" / "cute"
PROGRAMS = ROOT / "tests" / "errors" / "programs"
TOOLS = ("memcheck", "racecheck")

# By kernel: the numbers of small cases that together use its paths.
PRODUCTS = {
    "hopper": (0, 1, 2), "split": (0, 1), "parts": (0,), "ampere": (0, 1), "ampere_tma": (0, 1),
    "sgemm": (0,),
}  # fmt: skip
KERNELS = (
    "block_reduce", "elementwise", "gather_scatter", "hopper_gemm", "hopper_grouped_gemm",
    "normalization", "row_reduction", "saxpy", "softmax", "tiled_matmul", "transpose",
    "vector_add_wide",
)  # fmt: skip

# Kernels of attention, and a test of each.
ATTENTION = {
    "attention": "attention.py::test_the_kernel_for_hopper",
    "attention stays": "attention.py::test_blocks_of_hopper_that_stay_for_many_tiles",
    "attention masks": "masks.py::test_tiles_of_other_documents_are_not_visited",
    "attention many tiles": "masks.py::test_more_tiles_than_a_warp_looks_at",
    "attention functions": "attention.py::test_hopper_with_a_function_and_rows_that_see_nothing",
    "attention packed": "attention.py::test_packed_sequences",
    "attention splits": "attention.py::TestDecoding::test_keys_are_split_over_blocks",
    "attention pages": "attention.py::TestDecoding::test_a_cache_of_pages",
    "attention pages, TMA": "attention.py::test_a_cache_of_pages_by_the_kernel_for_hopper",
    "attention ring": "key_walks.py::test_windows_and_masks_that_skip_tiles",
    "decoding": "decoding.py::test_options",
    "attention narrow": "narrow_attention.py::test_factors_of_heads_and_batches",
    "attention narrow, slack": "narrow_attention.py::test_results_without_the_logarithms_of_sums",
    "attention narrow, masks": "narrow_attention.py::test_masks_of_the_users",
    "gradients": "attention_backward.py::test_the_kernel_for_hopper",
    "gradients masks": "attention_backward.py::test_the_kernel_for_hopper_with_masks",
    "gradients shared": "attention_backward.py::test_the_kernel_for_hopper_with_shared_keys",
    "gradients mma.sync": "attention_backward.py::test_options",
    "rows of no sequence": "lengths.py::test_rows_of_no_sequence_have_no_gradient",
}


# Programs that are wrong, and the tool that has to say so: it looks where kernels run.
WRONG = {"memcheck": "sim_out_of_bounds", "racecheck": "sim_race"}


def runs() -> dict[str, list[str]]:
    """The programs to run, by name."""
    found = {}
    for kernel, numbers in PRODUCTS.items():
        for i in numbers:
            chosen = ["--small", "--seed", "2", "--kernels", kernel, "--only", str(i)]
            found[f"{kernel} {i}"] = [str(RANDOM), *chosen]
    for name in KERNELS:
        script = EXAMPLES / f"{name}.py"
        if script.exists():
            found[name] = [str(script)]
    tests = ROOT / "tests" / "cute" / "flash"
    for name, test in ATTENTION.items():
        found[name] = ["-m", "pytest", "-q", "-m", "slow or not slow", f"{tests}/test_{test}"]
    return found


def sanitize(tool: str, program: list[str], most: float) -> tuple[str, float, str]:
    """The sanitizer's last words, the seconds it took, `most` of them, and all output."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", sys.executable]
    started = time.perf_counter()
    try:
        made = subprocess.run(
            [*command, *program], capture_output=True, text=True, timeout=most, check=False
        )
    except subprocess.TimeoutExpired:
        return "did not end", time.perf_counter() - started, ""
    seconds = time.perf_counter() - started
    output = made.stdout + made.stderr
    found = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", output)
    said = found[1].strip() if found else "no summary"
    if made.returncode:
        said += f", exit {made.returncode}"
    return said, seconds, output


def is_clean(said: str) -> bool:
    """True for a summary of nothing found, at the end of a program that ended well."""
    return re.match(r"0 (errors|hazards)", said) is not None and "exit" not in said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--only", nargs="*", default=(), help="words of names of runs")
    parser.add_argument("--seconds", type=float, default=240, help="the most of a run")
    given = parser.parse_args()
    if shutil.which("compute-sanitizer") is None:
        print("compute-sanitizer is not here; it comes with the CUDA toolkit")
        return 2
    words = given.only or [""]
    chosen = {n: p for n, p in runs().items() if any(word in n for word in words)}
    with ThreadPoolExecutor(given.jobs) as pool:
        tasks = [
            (name, tool, pool.submit(sanitize, tool, program, given.seconds))
            for name, program in chosen.items()
            for tool in TOOLS
        ]
        controls = [
            (tool, name, pool.submit(sanitize, tool, [str(PROGRAMS / f"{name}.py")], given.seconds))
            for tool, name in WRONG.items()
        ]
        bad = 0
        for tool, name, task in controls:
            said, seconds, _ = task.result()
            print(f"{name:22} {tool:10} {seconds:6.1f} s  {said} (a program that is wrong)")
            if is_clean(said):
                print(f"    {tool} does not see what is wrong with it", flush=True)
                bad += 1
        for name, tool, task in tasks:
            said, seconds, output = task.result()
            print(f"{name:22} {tool:10} {seconds:6.1f} s  {said}", flush=True)
            if not is_clean(said):
                bad += 1
                print("\n".join(f"    {line}" for line in output.splitlines()[:40]), flush=True)
    count = len(tasks) + len(controls)
    print(f"{count - bad} of {count} runs are as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
