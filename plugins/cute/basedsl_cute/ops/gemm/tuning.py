"""`matmul(..., config="tune")`: the configuration by measurement instead of by the model.

The first call for arrays of a kind measures what the model ranks first, of many more configurations
than it compares otherwise. Copies of the operands take turns, so that they come from memory as in a
program that does other things between. The result is kept on disk, see `interop.tuned_results`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from basedsl import ArrayRecord, DSLCallError, DSLError, logger
from basedsl_cute.device import driver
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.interop import testing, tuned_results
from basedsl_cute.ops.array_libraries import ArrayLibrary

TUNE = "tune"
"""The `config` that asks for measuring."""

_log = logger("cute.matmul")
_MOST_COPIES = 64
_MOST_BYTES = 2**30  # of all copies
_LAUNCHES = 40  # of one timing, at least
_ROUNDS = 3
_CLOSE = 1.1  # times the best time: within it, candidates are measured again

Measure = Callable[[Any], float]


def fastest_config(
    candidates: Sequence[Any], measure: Measure, function: Any, kind: Any, stream: int
) -> Any | None:
    """Return the candidate that takes least by `measure` (microseconds), or that was kept for this
    `kind` of arrays; None if none works.

    Raises DSLCallError if it has to measure while `stream` is captured.

    `function` is the kernel's `@jit` function: its text is a part of what a result is kept by.
    """
    names = [str(one) for one in candidates]
    key = tuned_results.key_of(function, {"config": names}, kind)
    kept = (tuned_results.read(key) or {}).get("config")
    if kept in names:
        return candidates[names.index(kept)]
    driver.ensure_context()  # threads of autograd have none
    if driver.call("cuStreamIsCapturing", stream):
        raise DSLCallError(
            "matmul cannot measure configurations while a CUDA graph is captured",
            hint="call it once before the capture",
        )
    times: dict[str, list[float]] = {}
    known = dict(zip(names, candidates, strict=True))
    for _ in range(_ROUNDS):
        best = min((min(found) for found in times.values()), default=float("inf"))
        for name in [n for n in known if n not in times or min(times[n]) < _CLOSE * best]:
            try:
                took = measure(known[name])
            except DSLError as error:  # its kernel does not take these arrays, or does not fit
                _log.debug("%s: passed over: %s", name, str(error).splitlines()[0])
                del known[name]
                continue
            times.setdefault(name, []).append(took)
            _log.debug("%s: %.2f us", name, took)
    if not times:
        return None
    chosen = min(times, key=lambda name: min(times[name]))
    _log.info("%s: %s, %.2f us", kind, chosen, min(times[chosen]))
    tuned_results.write(key, function.fn.__qualname__, {"config": chosen})
    return known[chosen]


def microseconds(lib: ArrayLibrary, plan: Any, arrays: Any, workspace: Any, extras: Any) -> float:
    """Measure one launch of a plan in a row of launches, with copies of A, B and C in turn.

    The launches are captured in a CUDA graph, on a stream of their own.
    """
    copies = list(_copies(lib, arrays))
    stream = driver.CudaStream()
    handle = driver.stream_handle(stream)
    space = [] if workspace is None else [lib.empty(workspace[0], workspace[1], arrays[0])]

    def launch(a: Any, b: Any, c: Any) -> None:
        plan.call(a, b, c, (*space, *extras), plan.blocks, handle)

    try:
        driver.synchronize()  # the copies are made on other streams
        turns = iter(copies)
        return testing.benchmark(
            launch,
            workspace_generator=lambda: testing.JitArguments(*next(turns)),
            workspace_count=len(copies),
            iterations=-(-_LAUNCHES // len(copies)) * len(copies),
            warmup_iterations=len(copies),
            stream=stream,
            use_cuda_graphs=True,
        )
    finally:
        driver.synchronize()
        stream.destroy()


def _copies(lib: ArrayLibrary, arrays: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the arrays, and copies with the same strides: together several times the L2 cache."""
    records = [ArrayRecord.of(x) for x in arrays]
    shapes = [(tuple(one.shape), tuple(one.strides)) for one in records]
    spans = [1 + sum((n - 1) * d for n, d in zip(*one, strict=True)) for one in shapes]
    size = sum(span * one.dtype[1] // 8 for span, one in zip(spans, records, strict=True))
    wanted = 1 + 4 * HardwareInfo().get_l2_cache_size_in_bytes() // max(size, 1)
    yield arrays
    if any(d < 0 for _, strides in shapes for d in strides):
        return
    for _ in range(min(wanted, _MOST_COPIES, _MOST_BYTES // max(size, 1))):
        made = []
        for x, span, (shape, strides) in zip(arrays, spans, shapes, strict=True):
            copy = lib.view(lib.empty((span,), x.dtype, x), shape, strides)
            if 0 not in strides:
                copy[...] = x
            made.append(copy)
        yield made
