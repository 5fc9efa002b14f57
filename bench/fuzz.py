"""Random programs in many processes: `python bench/fuzz.py toy --first 0 --count 10000 --jobs 16`.

Prints each failure (of programs, made small) and a last line with what ran. The programs are those
of `pytest --pyargs basedsl.conformance --basedsl-dsl NAME --basedsl-fuzz N`; `--sessions` runs
sessions in their place. `--cost` runs them in this process and prints the processor time of one,
and the share of each stage of the compiler.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import os
import platform
import statistics
import time
import warnings
from collections import Counter
from typing import Any, NamedTuple


class Report(NamedTuple):
    """The outcome of one seed: the difference or "", and True if a refusal ended its session."""

    failure: str
    refused: bool = False


def conformance_of(name: str) -> Any:
    """The conformance declared by a DSL, ready to run."""
    from basedsl.plugin import plugin_manager

    warnings.simplefilter("ignore")  # random programs compare ints with `is`, and the like
    conformance = plugin_manager().conformances()[name].load()
    os.environ.update(conformance.environment)
    return conformance


def check(job: tuple[str, int, bool]) -> Report:
    """The report on one seed."""
    name, seed, sessions = job
    conformance = conformance_of(name)
    if not sessions:
        from basedsl.conformance.fuzz import check_seed

        return Report(check_seed(conformance, seed))
    from basedsl.conformance.sessions import check_session

    found = check_session(conformance, seed)
    return Report(found.failure, found.refused)


def cost(name: str, seeds: range, sessions: bool) -> None:
    """Print the processor time of a program, and of each stage."""
    conformance = conformance_of(name)
    driver, stages = conformance.dsl.driver, Counter[str]()
    variant, count = driver.variant, Counter[str]()

    def measured(call: Any) -> Any:
        compiled, is_new = variant(call)
        if is_new:
            count["compilations"] += 1
            stages.update(compiled.seconds)
        return compiled, is_new

    check((name, seeds.start - 1, sessions))  # loads what is loaded once
    driver.variant = measured
    times = []
    for seed in seeds:
        start = time.process_time()
        check((name, seed, sessions))
        times.append(time.process_time() - start)
    total = sum(stages.values())
    print(
        f"{name}: {statistics.mean(times) * 1e3:.1f} ms of processor time a program (median "
        f"{statistics.median(times) * 1e3:.1f}), {count['compilations']} compilations of "
        f"{len(times)} programs"
    )
    print("  " + ", ".join(f"{k} {v / total:.1%}" for k, v in stages.most_common(10)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dsl")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--sessions", action="store_true", help="several calls with state")
    parser.add_argument("--cost", action="store_true", help="print what a program costs")
    given = parser.parse_args()
    os.environ["BASEDSL_CACHE"] = "0"
    start, failures, refused = time.perf_counter(), 0, 0
    seeds = range(given.first, given.first + given.count)
    if given.cost:
        cost(given.dsl, seeds, given.sessions)
        return
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        jobs = [(given.dsl, seed, given.sessions) for seed in seeds]
        for report in pool.imap_unordered(check, jobs, chunksize=10):
            refused += report.refused
            if report.failure:
                failures += 1
                print(report.failure, flush=True)
    what = f"sessions ({refused} ended by a refusal)" if given.sessions else "programs"
    print(
        f"{given.dsl}: {given.count} {what}, seeds {seeds.start} to {seeds.stop - 1}, "
        f"{failures} failures, {time.perf_counter() - start:.0f} s, {given.jobs} processes, "
        f"Python {platform.python_version()}, {datetime.date.today()}"
    )
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
