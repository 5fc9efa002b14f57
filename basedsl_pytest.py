"""The pytest plugin: `--basedsl-dsl NAME` runs the conformance tests on that DSL.

`--basedsl-dsl` may be given several times; the ini option `conformance_dsls` gives the default. The
number of random programs is `--basedsl-fuzz N`, the first seed `--basedsl-fuzz-seed S`.

It is a module of its own, because pytest imports it in every run of an environment: a run that uses
none of it imports nothing of `basedsl`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from basedsl.conformance.declaration import Conformance

BATCH = 25


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("basedsl", "conformance of basedsl DSLs")
    group.addoption(
        "--basedsl-dsl",
        action="append",
        default=[],
        metavar="NAME",
        help="run conformance on this DSL",
    )
    group.addoption(
        "--basedsl-fuzz", type=int, default=300, metavar="N", help="how many random programs (300)"
    )
    group.addoption(
        "--basedsl-fuzz-seed", type=int, default=0, metavar="S", help="the first seed (0)"
    )
    parser.addini(
        "conformance_dsls", "DSLs to run conformance on without --basedsl-dsl", "args", []
    )


def conformances(config: pytest.Config) -> list[Conformance]:
    """Return the declarations asked for; a usage error lists those that exist."""
    from basedsl.plugin import plugin_manager

    known = plugin_manager().conformances()
    names = config.getoption("--basedsl-dsl") or config.getini("conformance_dsls")
    found = []
    for name in names:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise pytest.UsageError(
                f"--basedsl-dsl {name}: no such declaration (there is: {there})"
            )
        found.append(known[name].load())
    return found


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.getoption("--basedsl-dsl"):
        conformances(session.config)  # an unknown name is an error before anything is collected


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not metafunc.module.__name__.startswith("basedsl.conformance."):
        return
    if "conformance" in metafunc.fixturenames:
        found = conformances(metafunc.config)
        if "seeds" in metafunc.fixturenames:
            pairs = [(one, batch) for one in found for batch in _batches(metafunc.config, one)]
            ids = [f"{one.name}-{batch.start}-{batch.stop - 1}" for one, batch in pairs]
            metafunc.parametrize(("conformance", "seeds"), pairs, ids=ids)
        else:
            metafunc.parametrize("conformance", found, ids=[one.name for one in found])
    if "case" in metafunc.fixturenames:
        from basedsl.conformance.programs import all_cases

        cases = all_cases()
        metafunc.parametrize(("name", "case"), cases, ids=[name for name, _ in cases])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how many conformance programs each DSL runs, and why it leaves others out."""
    reports = (one for kind in terminalreporter.stats.values() for one in kind)
    ran = {
        one.nodeid.partition("[")[2].rstrip("]").partition("-")[0]
        for one in reports
        if "test_programs.py::" in getattr(one, "nodeid", "")
    }
    if not ran:
        return
    from basedsl.conformance.features import skipped
    from basedsl.conformance.programs import all_cases

    for conformance in conformances(config):
        if not any(conformance.name.startswith(name) for name in ran):
            continue
        run, left = skipped(conformance, all_cases())
        total = run + sum(left.values())
        terminalreporter.write_line(f"{conformance.name} runs {run} of {total} programs")
        for why, count in sorted(left.items(), key=lambda one: -one[1]):
            terminalreporter.write_line(f"  {count:4} left out, {why}")


def _batches(config: Any, conformance: Conformance) -> list[range]:
    first: int = config.getoption("--basedsl-fuzz-seed")
    end = first + round(config.getoption("--basedsl-fuzz") * conformance.fuzz_share)
    return [range(at, min(at + BATCH, end)) for at in range(first, end, BATCH)]
