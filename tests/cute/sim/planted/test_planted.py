"""Kernels with one planted bug each, and their correct twins: every bug is found, no twin alarms.

A module of this folder has kernels on arrays `x` (floats), `y` (floats) and `c` (integers), whose
parameter `bug` plants the bug, and a table `CASES`: kernel, class of the error, part of its text,
and how to launch it.
"""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl_cute.sim import (
    CoordinateError,
    MemoryAccessError,
    RaceError,
    UninitializedReadError,
    explore,
)

HERE = Path(__file__).parent
NAMES = sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith(("test_", "conftest")))

# Bugs that no check finds yet, and twins that a check complains about.
MISSED = set((HERE / "missed.txt").read_text().split())


def module(name):
    known = f"planted_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, HERE / f"{name}.py")
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


def cases():
    for name in NAMES:
        for kernel, error, text, *rest in module(name).CASES:
            about = rest[0] if rest else {}
            title = f"{name}-{kernel.__name__}"
            marks = ()
            if title in MISSED:
                marks = pytest.mark.xfail(strict=True)
            yield pytest.param(kernel, error, text, about, id=title, marks=marks)


CASES = list(cases())


TWINS = [
    pytest.param(
        p.values[0],
        p.values[3],
        id=p.id,
        marks=pytest.mark.xfail(strict=True) if f"twin:{p.id}" in MISSED else (),
    )
    for p in CASES
]


@cute.jit
def host(
    kernel: cute.Constexpr,
    x: cute.Tensor,
    y: cute.Tensor,
    c: cute.Tensor,
    bug: cute.Constexpr,
    launch: cute.Constexpr,
    times: cute.Constexpr = 1,
):
    for _ in cute.range_constexpr(times):
        kernel(x, y, c, bug).launch(**dict(launch))


def run(kernel, about, bug):
    x = np.arange(about.get("x", 256), dtype=np.float32)
    y = np.zeros(about.get("y", 256), np.float32)
    c = np.zeros(about.get("c", 64), np.int32)
    alias = about.get("alias") if bug else None
    if alias == "same":
        y = x
    elif alias == "shifted":
        x, y = x[:-1], x[1:]
    if "shape" in about:
        x = np.arange(np.prod(about["shape"]), dtype=np.float32).reshape(about["shape"])
        y = np.zeros_like(x)
    launch = {"grid": about.get("grid", 1), "block": about.get("block", 64)}
    for name in ("cluster", "cooperative", "use_pdl", "smem"):
        if name in about:
            launch[name] = about[name]
    if about.get("whole"):
        kernel(x, y, c, bug)
        return
    host(kernel, x, y, c, bug, tuple(launch.items()), about.get("launches", 1))


@pytest.fixture(autouse=True)
def checked(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    monkeypatch.setenv("CUTE_DSL_MAX_STEPS", "2000")
    monkeypatch.setenv("CUTE_DSL_MAX_SPINS", "500")


@pytest.mark.parametrize(("kernel", "error", "text", "about"), CASES)
def test_the_bug_is_found(kernel, error, text, about, monkeypatch):
    if "schedules" in about:  # found where the schedule lets a thread see the state between
        assert explore(run, (kernel, about, False), schedules=about["schedules"]) == []
        failures = explore(run, (kernel, about, True), schedules=about["schedules"])
        monkeypatch.setenv("CUTE_DSL_SCHEDULE_SEED", str(failures[0].seed))
    with pytest.raises(error, match=text) as caught:
        run(kernel, about, True)
    assert isinstance(caught.value, DSLError)
    check_report(kernel.__name__, caught.value)
    assert caught.value.span is not None
    assert Path(caught.value.span.filename).parent in (HERE, HERE.parent)  # or kernel_parts


# Found where no thread is to blame, or where there is one place only.
NO_THREAD = {"dependent_without_wait"}
ONE_PLACE = NO_THREAD | {
    "block_ends_too_soon",
    "peer_ends_before",
    "dependent_reads_before_the_wait",
    "dependent_overwrites_what_is_read",
    "dependent_writes_before_the_wait",
    "peer_may_not_have_started",
    "peer_read_without_barrier",
    "arrived_but_not_waited",
}


def check_report(name, error):
    """A report says where, who, which element of what, against what, and what to write."""
    text = str(error)
    headline = text.splitlines()[0]
    assert len(headline) < 140 and error.hint, headline
    assert error.span.line > 0 and error.span.col > 0, headline
    if name in NO_THREAD:
        return
    assert error.where is not None and "in thread (" in text and ") of block (" in text, headline
    if isinstance(error, RaceError) and name not in ONE_PLACE:
        assert len(re.findall(r"^ *--> .*:[0-9]+", text, re.MULTILINE)) >= 3  # and the launch
        assert re.search(r"(element|byte) [0-9]+ of `\w+`|copy counts|mbarrier", headline), headline
    if isinstance(error, RaceError) and "nothing orders the two" in text:
        assert re.search(r"touch byte [0-9]+ of [0-9]+ \([0-9]+ elements\)", text), text
    if isinstance(error, CoordinateError):
        assert re.search(r"whose extent is [0-9]+", headline), text
        if "that it is cut from" not in headline:
            assert "the tensor is `" in text, text
    elif isinstance(error, MemoryAccessError | UninitializedReadError):
        assert re.search(r"`\w+`|mma|registers|shared memory of block", text), text


@pytest.mark.parametrize(("kernel", "about"), TWINS)
def test_the_twin_runs(kernel, about):
    run(kernel, about, False)


def test_there_are_many():
    assert len({p.id for p in CASES}) == len(CASES) >= 150
