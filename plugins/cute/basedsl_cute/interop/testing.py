"""`cute.testing`: timing, autotuning, and helpers for programs that check their own results."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl import (
    Boolean,
    DSLCallError,
    DSLError,
    DSLRuntimeError,
    Numeric,
    configure_logs,
    current_trace_or_none,
    is_dynamic,
    logger,
    with_article,
)
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.device import driver
from basedsl_cute.device.graph import Graph
from basedsl_cute.dsl.compiled import CuteCompiled
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.dsl.machine import current_target, synchronize
from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.interop import tuned_results
from basedsl_cute.interop.perf_report import Benchmark, Mark, Report, perf_report
from basedsl_cute.tensors.tensor import Tensor

__all__ = [
    "Benchmark",
    "CantImplementError",
    "JitArguments",
    "Mark",
    "Report",
    "assert_",
    "autotune_jit",
    "benchmark",
    "convert",
    "get_workspace_count",
    "perf_report",
    "tune",
]

_log = logger("cute.autotune")

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names("basedsl_cute.testing")


class CantImplementError(DSLError):
    """Raised by a program for a configuration that it does not support; tuning skips it."""


class JitArguments:
    """The arguments of one call, for `benchmark` and `tune`; tensors of `from_dlpack` keep their
    arrays alive.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self._owners: list[Any] = []

    def add_to_scope(self, owners: Sequence[Any]) -> None:
        """Keep `owners`, objects that own the arguments' memory, alive as long as the arguments."""
        self._owners += owners


# Timing ------------------------------------------------------------------------------------------


@explains_arguments
def benchmark(
    callable: Callable[..., Any],
    *,
    quantiles: Sequence[float] | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
    kernel_arguments: JitArguments | None = None,
    workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1,
    use_cuda_graphs: bool = False,
    nvtx_tag: str | None = None,
) -> Any:
    """Measure the average time of a call, in microseconds.

    Parameters:
        callable: the function to time, for instance the result of `cute.compile`.
        quantiles: numbers from 0 to 1, such as `(0.5, 0.2, 0.8)`: time each call by itself, and
            return these quantiles of the times in place of the average.
        warmup_iterations: the number of calls before the timed ones.
        iterations: the number of timed calls.
        stream: the stream that the calls use, None for the default stream.
        kernel_arguments: the arguments of each call, by default none.
        workspace_generator: a function that makes the arguments of a call. The calls use
            `workspace_count` such sets in turn, so that no call finds its data in the L2 cache; see
            `get_workspace_count`.
        use_cuda_graphs: capture the calls in a CUDA graph, on a stream that is not the default one,
            and time its replay.
        nvtx_tag: the name of a range in a profile, where NVTX is installed.

    On a GPU, CUDA events take the time; on the simulator it is the time of simulating. Raises
    DSLCallError for numbers below 1, DSLRuntimeError for capturing the default stream.

    >>> from basedsl_cute import testing
    >>> microseconds = testing.benchmark(lambda: sum(range(100)), iterations=10)
    >>> microseconds > 0
    True
    """
    if not builtins.callable(callable):
        raise DSLCallError(
            f"benchmark() takes a function to call, not {with_article(type(callable))}",
            hint="pass what calls it: benchmark(lambda: f(x))",
        )
    for name, count in (("iterations", iterations), ("warmup_iterations", warmup_iterations)):
        if not isinstance(count, int):
            raise DSLCallError(
                f"{name} is {with_article(type(count))}, not an integer", hint=f"{name}=100"
            )
    if iterations < 1 or warmup_iterations < 0:
        raise DSLCallError("benchmark() takes at least one iteration, and no negative warm-up")
    if workspace_count < 1 or (workspace_count > 1 and workspace_generator is None):
        raise DSLCallError(
            f"a workspace_count of {workspace_count} needs a workspace_generator",
            hint="pass a function that makes the JitArguments of one call",
        )
    if workspace_generator is not None:
        sets = [workspace_generator() for _ in range(workspace_count)]
    else:
        sets = [kernel_arguments or JitArguments()]
    for one in sets:
        if not isinstance(one, JitArguments):
            raise DSLCallError(f"the arguments of a call are JitArguments, not {one!r}")
    if quantiles is not None and not all(0 <= q <= 1 for q in quantiles):
        raise DSLCallError(f"quantiles are numbers from 0 to 1, not {tuple(quantiles)}")
    on_gpu = current_target().is_gpu
    if quantiles is not None and use_cuda_graphs and on_gpu:
        raise DSLCallError("quantiles need a time for each call, which a CUDA graph does not give")

    def calls(count: int) -> None:
        for one in itertools.islice(itertools.cycle(sets), count):
            callable(*one.args, **one.kwargs)

    with _range(nvtx_tag):
        if use_cuda_graphs and on_gpu:
            return _time_graphs(calls, warmup_iterations, iterations, stream)
        calls(warmup_iterations)
        timed = _time_on_gpu if on_gpu else _time_here
        if quantiles is not None:
            rest = itertools.cycle(sets)

            def call() -> None:
                one = next(rest)
                callable(*one.args, **one.kwargs)

            times = [timed(call, stream) for _ in range(iterations)]
            return tuple(float(np.quantile(times, q)) for q in quantiles)
        return timed(lambda: calls(iterations), stream) / iterations


def _time_here(run: Callable[[], None], stream: Any) -> float:
    start = perf_counter()
    run()
    return (perf_counter() - start) * 1e6


def _time_on_gpu(run: Callable[[], None], stream: Any) -> float:
    synchronize()
    start, end = driver.DriverEvent(), driver.DriverEvent()
    try:
        start.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        return end.milliseconds_since(start) * 1e3
    finally:
        start.destroy()
        end.destroy()


def _time_graphs(calls: Callable[[int], None], warmup: int, iterations: int, stream: Any) -> float:
    if driver.stream_handle(stream) == 0:
        raise DSLRuntimeError(
            "work of the default stream cannot be captured in a CUDA graph",
            hint="pass stream=, another stream, that the calls use too",
        )
    calls(1)  # loads the code, which capturing does not
    synchronize()
    if warmup:
        with Graph.capture(stream, lambda: calls(warmup)) as graph:
            graph.launch(stream)
    with Graph.capture(stream, lambda: calls(iterations)) as graph:
        return _time_on_gpu(lambda: graph.launch(stream), stream) / iterations


@contextlib.contextmanager
def _range(tag: str | None) -> Iterator[None]:
    """Mark a range in profiles, where NVTX for Python is installed."""
    try:
        import nvtx
    except ImportError:
        nvtx = None
    if tag is None or nvtx is None:
        yield
        return
    with nvtx.annotate(tag):
        yield


@explains_arguments
def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """The number of argument sets of `one_workspace_bytes` that exceed the L2 cache together.

    It is at most the number of calls, `warmup_iterations` and `iterations` together. Raises
    DSLCallError for a size below 1.
    """
    if one_workspace_bytes < 1:
        raise DSLCallError(f"a workspace has at least one byte, not {one_workspace_bytes}")
    needed: int = HardwareInfo().get_l2_cache_size_in_bytes() // one_workspace_bytes + 1
    return max(1, min(needed, warmup_iterations + iterations))


# Tuning ------------------------------------------------------------------------------------------


@explains_arguments
def tune(
    func: Callable[..., Callable[..., Any]],
    params_dict: Mapping[str, Sequence[Any]] | None = None,
    kernel_arguments: JitArguments | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
) -> dict[str, Any]:
    """Find the fastest combination of parameters, and return it as keyword arguments of `func`.

    `params_dict` maps the names of parameters to the values to try. `func` gets `kernel_arguments`,
    if it takes them, and a combination by name; it returns the function that is timed, as by
    `benchmark`, with `kernel_arguments` unless `func` has got them and the function needs none. A
    combination that raises is skipped; if all raise, the first error is raised, and DSLCallError
    if there is none at all. `warmup_iterations` calls are not timed, `iterations` are, on `stream`.
    """
    given = kernel_arguments or JitArguments()

    def time(config: dict[str, Any]) -> Any:
        takes = _takes(func, given.args, {**given.kwargs, **config})
        timed = func(*given.args, **given.kwargs, **config) if takes else func(**config)
        return benchmark(
            timed,
            warmup_iterations=warmup_iterations,
            iterations=iterations,
            stream=stream,
            kernel_arguments=None if takes and _needs_nothing(timed) else kernel_arguments,
        )

    return _fastest(params_dict or {}, time)


def _takes(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _needs_nothing(timed: Callable[..., Any]) -> bool:
    return not isinstance(timed, CuteCompiled) and _takes(timed, (), {})


def _fastest(
    params: Mapping[str, Sequence[Any]], time: Callable[[dict[str, Any]], float]
) -> dict[str, Any]:
    configure_logs(CUTE.options)
    shown = CUTE.options.log_autotune

    def say(text: str) -> None:
        _log.info("%s", text)
        if shown:
            print(f"autotune: {text}")

    best: tuple[float, dict[str, Any]] | None = None
    failure: Exception | None = None
    for values in itertools.product(*params.values()):
        config = dict(zip(params, values, strict=True))
        try:
            took = time(config)
        except Exception as error:  # a configuration may fail in any way
            failure = failure or error
            say(f"{config}: passed over: {str(error).splitlines()[0]}")
            continue
        say(f"{config}: {took:.2f} us")
        if best is None or took < best[0]:
            best = took, config
    if best is None:
        if failure is not None:
            failure.add_note("No combination of the parameters to tune works; this is the first.")
            raise failure
        raise DSLCallError("there is nothing to tune: a parameter has no values")
    say(f"best: {best[1]}")
    return best[1]


@explains_arguments
def autotune_jit(
    params_dict: Mapping[str, Sequence[Any]] | None = None,
    update_on_change: Sequence[str] | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
) -> Callable[[Any], Callable[..., Any]]:
    """Decorate a `@jit` function so that a call finds the fastest values of some parameters.

    `params_dict` maps the names of parameters to the values to try. The first call times every
    combination, as by `tune`; so does each call for which the arguments named in `update_on_change`
    have new values (of arrays, a new shape or type). A parameter that a call passes is not tuned.
    Results are kept on disk, below the folder of the cache, for other processes on such a device;
    the option `cache` turns that off, and a change of the function's text forgets them.
    `cute.compile` takes the decorated function too, and compiles it for the fastest values. Each
    combination is timed by `iterations` calls, after `warmup_iterations` that are not timed.
    """

    def decorate(function: Any) -> Callable[..., Any]:
        known: dict[Any, dict[str, Any]] = {}

        def tuned(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            """The keyword arguments of a call, with the best values of what it does not give."""
            given = inspect.signature(function.fn).bind_partial(*args, **kwargs)
            params = {k: v for k, v in (params_dict or {}).items() if k not in given.arguments}
            if not params:
                return kwargs
            given.apply_defaults()
            changing = tuple(_kind(name, given.arguments) for name in update_on_change or ())
            key = (tuple(params), changing)
            if key not in known:
                kept = tuned_results.key_of(function, params, changing)
                found = tuned_results.read(kept)
                if found is not None and _is_choice(found, params):
                    known[key] = found
            if key not in known:

                def time(config: dict[str, Any]) -> Any:
                    return benchmark(
                        function,
                        warmup_iterations=warmup_iterations,
                        iterations=iterations,
                        kernel_arguments=JitArguments(*args, **kwargs, **config),
                    )

                known[key] = _fastest(params, time)
                tuned_results.write(kept, function.fn.__qualname__, known[key])
            return {**kwargs, **known[key]}

        @functools.wraps(function.fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **tuned(args, kwargs))

        call.__cute_tuned__ = (function, tuned)  # type: ignore[attr-defined]
        return call

    return decorate


def _is_choice(found: dict[str, Any], params: Mapping[str, Sequence[Any]]) -> bool:
    """Return True if a kept result chooses one of the values of each parameter."""
    return found.keys() == params.keys() and all(v in params[k] for k, v in found.items())


def _kind(name: str, bound: Mapping[str, Any]) -> Any:
    if name not in bound:
        raise DSLCallError(
            f"update_on_change names '{name}', which this call does not give",
            hint="name parameters of the function",
        )
    value = bound[name]
    shape = getattr(value, "shape", None)
    if shape is not None:
        dtype = getattr(value, "element_type", None) or getattr(value, "dtype", None)
        return type(value), tuple(shape), str(dtype)
    return type(value), value


# In kernels --------------------------------------------------------------------------------------


def assert_(condition: Any, message: str = "assertion failed") -> None:
    """Assert that `condition` holds, with `message`: while compiling, or else at run time.

    A false condition raises AssertionError. Kernels on a GPU check it only with the compile option
    `--enable-assertions`; host code and the simulator always do.
    """
    trace = current_trace_or_none()
    if trace is None or not is_dynamic(condition):
        if not condition:
            raise AssertionError(message)
        return
    truth = condition.to(Boolean) if isinstance(condition, Numeric) else condition
    trace.emitter.assert_(truth.ir_value(), f"AssertionError: {message}", trace.loc())


_THREADS = 128


@CUTE.kernel
def _convert_kernel(src: Tensor, dst: Tensor) -> None:
    i = arch.block_idx()[0] * _THREADS + arch.thread_idx()[0]
    if i < algebra.size(dst.shape):
        dst[i] = src[i].to(dst.element_type)


@CUTE.jit
def _convert(src: Tensor, dst: Tensor) -> None:
    blocks = algebra.ceil_div(algebra.size(dst.shape), _THREADS)
    _convert_kernel(src, dst).launch(grid=(blocks, 1, 1), block=(_THREADS, 1, 1))


@explains_arguments
def convert(src: Any, dst: Any) -> None:
    """Copy the tensor `src` to `dst`, of the same shape, by a kernel that converts each element.

    Both are arguments for `@jit` functions. Raises DSLCallError for different shapes.
    """
    if tuple(src.shape) != tuple(dst.shape):
        raise DSLCallError(f"the shapes differ: {tuple(src.shape)} and {tuple(dst.shape)}")
    _convert(src, dst)
