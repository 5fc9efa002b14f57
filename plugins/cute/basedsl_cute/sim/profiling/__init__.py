"""Profiles of kernels on the simulator: what each Python line costs, before there is a GPU.

`profile(fn, *args)` calls a function on the simulator and counts what its kernels do: `operations`
says what an operation is on hardware, `transactions` counts sectors and bank conflicts,
`counting` observes the launches, `result` has the tables. None of that is loaded before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from basedsl import DSLCallError, DSLError, with_article
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.hardware.occupancy import occupancy
from basedsl_cute.hardware.targets import target_of
from basedsl_cute.sim.observe import Observer, watched_by
from basedsl_cute.sim.options import simulated

if TYPE_CHECKING:
    from basedsl_cute.sim.profiling.counting import KernelRun
    from basedsl_cute.sim.profiling.prediction import Prediction
    from basedsl_cute.sim.profiling.result import KernelProfile, Profile


@explains_arguments
def profile(
    function: Callable[..., Any],
    *args: Any,
    arch: str = "sm_90a",
    first_blocks: int | None = None,
    timeline: bool = False,
    **kwargs: Any,
) -> Profile:
    """Call a @jit function on the simulator, and return what its kernels did, line by line.

    `arch` is the architecture whose occupancy is given; where ptxas is there, the kernel's
    registers are too. `first_blocks` simulates that many blocks of each launch alone: results
    are then not complete, and NumPy arrays among `args` are left unchanged. With `timeline`, the
    result keeps what `Profile.timeline` writes. Raises what a call raises, and with `timeline`
    DSLCallError for an architecture whose rates are not known.
    """
    from basedsl_cute.sim.profiling.counting import Counter
    from basedsl_cute.sim.profiling.prediction import predict_run
    from basedsl_cute.sim.profiling.rates import rates_of
    from basedsl_cute.sim.profiling.result import Profile

    check_callable("profile", function)
    if first_blocks is not None:
        _check_blocks(first_blocks)
    rates = rates_of(arch) if timeline else None
    counter = Counter(first_blocks, keeps_events=timeline)
    run(counter, function, args, kwargs, copies=first_blocks is not None)
    resources = registers_of(function, args, kwargs, arch)
    profiles = [_with_resources(one, resources, arch) for one in counter.runs]
    if rates is None:
        return Profile(profiles)
    pairs = zip(counter.runs, profiles, strict=True)
    return Profile(
        profiles, [predict_run(one, rates, arch, made.registers, True) for one, made in pairs]
    )


@explains_arguments
def predict(
    function: Callable[..., Any],
    *args: Any,
    arch: str = "sm_90a",
    first_blocks: int = 4,
    timeline: bool = False,
    **kwargs: Any,
) -> list[Prediction]:
    """Predict the time of each launch of a @jit function on the GPU of an architecture.

    `first_blocks` blocks of each launch are simulated, of their cluster at least, and stand for the
    others; NumPy arrays among `args` are left unchanged. With `timeline`, predictions keep what
    `timeline.write` draws. Raises DSLCallError for an architecture whose
    rates are not known.
    """
    from basedsl_cute.sim.profiling.counting import Counter
    from basedsl_cute.sim.profiling.prediction import predict_run
    from basedsl_cute.sim.profiling.rates import rates_of

    check_callable("predict", function)
    _check_blocks(first_blocks)
    rates = rates_of(arch)
    counter = Counter(first_blocks, keeps_events=True)
    run(counter, function, args, kwargs, copies=True)
    resources = registers_of(function, args, kwargs, arch)
    out = []
    for one in counter.runs:
        found = resources.get(one.kernel)
        registers = None if found is None else found.registers
        out.append(predict_run(one, rates, arch, registers, timeline))
    return out


def _check_blocks(first_blocks: int) -> None:
    if first_blocks < 1:
        raise DSLCallError(f"first_blocks is {first_blocks}", hint="simulate one block at least")


def check_callable(what: str, function: Any) -> None:
    """Raise DSLCallError for a `function` that cannot be called, such as the result of a call."""
    if not callable(function):
        raise DSLCallError(
            f"{what} takes a @jit function, got {with_article(type(function))}",
            hint=f"write {what}(f, x), without calling f",
        )


def run(observer: Observer, function: Any, args: Any, kwargs: dict[str, Any], copies: bool) -> None:
    """Call a function on the simulator under an observer, its NumPy arrays placed as on a GPU. With
    `copies` they stay as they were.
    """
    from basedsl_cute.sim.profiling.placement import PlacedArrays

    placed = PlacedArrays()
    args = [placed.place(arg) for arg in args]
    kwargs = {name: placed.place(arg) for name, arg in kwargs.items()}
    if not hasattr(function, "compile"):
        call = functools.partial(function, *args, **kwargs)
    else:
        compiled = function.compile(*args, options="--arch sim", **kwargs)
        values = function.signature.bind(tuple(args), kwargs)
        static = {entry["argument_index"] for entry in compiled.get_constexpr_args()}
        dynamic = [value for i, value in enumerate(values) if i not in static]
        call = functools.partial(compiled, *dynamic)
    with simulated(), watched_by(observer):
        call()
    if not copies:
        placed.copy_back()


def registers_of(function: Any, args: Any, kwargs: dict[str, Any], arch: str) -> dict[str, Any]:
    """The resources of the kernels by name, as machine code for `arch` has them; empty where the
    function does not compile for it, or there is no ptxas.
    """
    if not hasattr(function, "compile"):
        return {}
    try:
        found = function.compile(*args, options=f"--arch {arch}", **kwargs).resources
        return {name: found[name] for name in found}
    except DSLError:
        return {}


def _with_resources(run: KernelRun, resources: dict[str, Any], arch: str) -> KernelProfile:
    from basedsl_cute.sim.profiling.result import KernelProfile

    made = KernelProfile.of(run)
    found = resources.get(made.name)
    threads = made.block[0] * made.block[1] * made.block[2]
    if found is not None and found.registers is not None:
        made.registers, made.spilled = found.registers, found.spills
    made.occupancy = occupancy(target_of(arch), threads, made.registers or 0, made.shared)
    return made
