"""Random programs in many processes: `python bench/fuzz.py toy --first 0 --count 10000 --jobs 16`.

Prints each failure, made small, and a last line with what ran. The programs are those of
`pytest --pyargs basedsl.conformance --dsl NAME --fuzz N`.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import os
import platform
import time
import warnings


def check(job: tuple[str, int]) -> str:
    """The report on one seed, or ""."""
    from basedsl.conformance.fuzz import check_seed
    from basedsl.plugin import plugin_manager

    warnings.simplefilter("ignore")  # random programs compare ints with `is`, and the like
    name, seed = job
    adapter = plugin_manager().conformances()[name].load()
    os.environ.update(adapter.environment)
    return check_seed(adapter, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dsl")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    os.environ["BASEDSL_CACHE"] = "0"
    start, failures = time.perf_counter(), 0
    seeds = range(given.first, given.first + given.count)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for report in pool.imap_unordered(check, [(given.dsl, s) for s in seeds], chunksize=10):
            if report:
                failures += 1
                print(report, flush=True)
    print(
        f"{given.dsl}: {given.count} programs, seeds {seeds.start} to {seeds.stop - 1}, "
        f"{failures} failures, {time.perf_counter() - start:.0f} s, {given.jobs} processes, "
        f"Python {platform.python_version()}, {datetime.date.today()}"
    )
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
