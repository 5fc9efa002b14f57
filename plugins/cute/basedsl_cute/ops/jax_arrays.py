"""Operations of JAX that run functions of `ops`: eager, under `jax.jit` and `vmap`, with gradients.

JAX arrays are immutable, and JAX makes the results. XLA calls such an operation with the addresses
of its buffers and its stream; there the buffers become arrays of another library, without a copy,
and the function runs as for any of these: NumPy on the CPU, PyTorch or CuPy on a GPU, whichever is
installed. `ops` import this module when they get arrays of JAX.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from basedsl import ArrayRecord, DSLRuntimeError, DSLTypeError, from_dlpack
from basedsl_cute.device import driver
from basedsl_cute.interop.jax.operations import JaxOperation
from basedsl_cute.ops.array_libraries import library

Write = Callable[..., None]
"""`write(outputs, *inputs, **options)` computes the outputs, a list of arrays, from the inputs."""

Shapes = Callable[..., Sequence[Any]]
"""`shapes(*inputs, **options)` gives an object with `shape` and `dtype` for each output."""


def is_jax(x: Any) -> bool:
    """True if `x` is an array of JAX, also one of a function that JAX traces."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def check_rows(operation: str, name: str, x: Any) -> None:
    """Raise DSLTypeError for an array that the operations on rows do not take. What is wrong is
    told while JAX traces a call: an error while XLA runs it is one of JAX's.
    """
    if not x.shape or not x.shape[-1]:
        raise DSLTypeError(f"{operation}: {name} is {tuple(x.shape)}, and has no rows of elements")
    if x.dtype.name not in ("float16", "bfloat16", "float32"):
        raise DSLTypeError(
            f"{operation}: {name} is of {x.dtype.name}", hint="Float16, BFloat16 or Float32"
        )


@functools.cache
def jax_operation(
    write: Write, shapes: Shapes, options: tuple[tuple[str, Any], ...], vjp: Any = None
) -> JaxOperation:
    """Return the operation for fixed `options`, pairs of names and values; it returns a tuple.

    `vjp(options, inputs, outputs, cotangents)` gives the cotangents of the inputs.
    """
    static = dict(options)

    def run(stream: Any, *records: ArrayRecord) -> None:
        outputs = [one for one in records if not one.readonly]
        inputs = [one for one in records if one.readonly]
        _run(lambda given, made: write(made, *given, **static), stream, inputs, outputs)

    operation = JaxOperation(
        run,  # type: ignore[arg-type]
        lambda *inputs: shapes(*inputs, **static),
        single=False,
        stream=0,
        aliases={},
        static={},
        vmap_method="broadcast_all",
    )
    if vjp is not None:
        operation.def_vjp(functools.partial(vjp, static))
    return operation


def _run(
    function: Callable[[list[Any], list[Any]], None],
    stream: Any,
    inputs: list[ArrayRecord],
    outputs: list[ArrayRecord],
) -> None:
    """Call a function with the arrays of buffers, on the stream of the device."""
    if not outputs[0].is_on_gpu:
        function([_of_numpy(x) for x in inputs], [_of_numpy(x) for x in outputs])
        return
    handle = driver.stream_handle(stream)
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        with (
            torch.cuda.stream(torch.cuda.ExternalStream(handle, outputs[0].device[1])),
            torch.no_grad(),
        ):
            function([_of_torch(torch, x) for x in inputs], [_of_torch(torch, x) for x in outputs])
    elif importlib.util.find_spec("cupy") is not None:
        cupy = importlib.import_module("cupy")
        with cupy.cuda.ExternalStream(handle, outputs[0].device[1]):
            function([_of_cupy(cupy, x) for x in inputs], [_of_cupy(cupy, x) for x in outputs])
    else:
        raise DSLRuntimeError(
            "on a GPU, ops of JAX arrays need PyTorch or CuPy for what they allocate",
            hint="pip install cupy-cuda13x",
        )


def _of_numpy(record: ArrayRecord) -> Any:
    kind = np.dtype(from_dlpack(*record.dtype).numpy_dtype)
    count = math.prod(record.shape)
    if not count:
        return np.empty(record.shape, kind)
    memory = (ctypes.c_char * (count * kind.itemsize)).from_address(record.address)
    array = np.frombuffer(memory, kind).reshape(record.shape)
    array.flags.writeable = not record.readonly
    return array


class _Bits:
    """The memory of a compact array on a GPU, as integers of its elements' width."""

    def __init__(self, record: ArrayRecord) -> None:
        self.record = record
        self.__cuda_array_interface__ = {
            "shape": tuple(record.shape),
            "typestr": f"<i{record.dtype[1] // 8}",
            "data": (record.address, False),
            "version": 3,
        }


def _of_torch(torch: Any, record: ArrayRecord) -> Any:
    if not math.prod(record.shape):
        device = torch.device("cuda", record.device[1])
        bits = torch.empty(tuple(record.shape), dtype=torch.int8, device=device)
        return bits.to(library(bits).dtype(from_dlpack(*record.dtype)))
    bits = torch.as_tensor(_Bits(record), device=torch.device("cuda", record.device[1]))
    return bits.view(library(bits).dtype(from_dlpack(*record.dtype)))


def _of_cupy(cupy: Any, record: ArrayRecord) -> Any:
    kind = np.dtype(from_dlpack(*record.dtype).numpy_dtype)
    if not math.prod(record.shape):
        return cupy.empty(record.shape, kind)
    return cupy.asarray(_Bits(record)).view(kind)
