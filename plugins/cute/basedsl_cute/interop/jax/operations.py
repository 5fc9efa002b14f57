"""`@jit` functions and kernels as operations of JAX: under `jit`, `vmap`, `shard_map`, exported.

The names are those that JAX programs with Warp kernels know. An operation's outputs are new arrays;
the `@jit` function gets them after its inputs, and writes them.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from basedsl import ArrayRecord, DSLCallError, DSLFunction, DSLRuntimeError, Numeric
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.arrays.tensor import HostTensor
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.host.stream import Stream
from basedsl_cute.interop.cuda import as_custream
from basedsl_cute.interop.jax import ffi
from basedsl_cute.interop.jax.shards import shard_arguments
from basedsl_cute.tensors.tensor import DeclaredTensor

_registry: dict[str, JaxOperation] = {}
_numbers = itertools.count()
_lock = threading.Lock()


def jax() -> Any:
    """The module JAX; DSLRuntimeError where it is not installed."""
    try:
        return importlib.import_module("jax")
    except ImportError:
        raise DSLRuntimeError("JAX is not installed", hint="pip install jax") from None


Convert = Callable[[ArrayRecord, int, bool], Any]


class JaxOperation:
    """An operation of JAX that runs a `@jit` function. Made by `jax_callable` and `jax_kernel`."""

    def __init__(
        self,
        fn: DSLFunction,
        shapes: Callable[..., Sequence[Any]],
        *,
        single: bool,
        stream: int | None,
        aliases: Mapping[int, int],
        static: Mapping[str, Any],
        vmap_method: str,
        convert: Convert | None = None,
    ) -> None:
        functools.update_wrapper(self, getattr(fn, "fn", fn))
        self._fn, self._shapes, self._single = fn, shapes, single
        self._stream, self._aliases, self._static = stream, dict(aliases), dict(static)
        self._vmap_method, self._convert = vmap_method, convert
        self.shards = shard_arguments(static)
        self._name = f"local:{next(_numbers)}"
        _registry[self._name] = self
        self._call: Callable[..., Any] = self._bind

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Return the outputs: one array, or a tuple of several."""
        return self._call(*inputs, **options)

    def def_vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the rule of reverse differentiation, which `jax.grad` uses.

        `rule(inputs, outputs, cotangents)` gets tuples, and returns a tuple with the cotangent of
        each input. It may call other operations.
        """
        call = jax().custom_vjp(self._bind)

        def forward(*inputs: Any) -> Any:
            outputs = self._bind(*inputs)
            return outputs, (inputs, outputs if not self._single else (outputs,))

        def backward(kept: Any, cotangents: Any) -> Any:
            inputs, outputs = kept
            given = (cotangents,) if self._single else tuple(cotangents)
            return tuple(rule(inputs, outputs, given))

        call.defvjp(forward, backward)
        self._call = call
        return rule

    def _bind(self, *inputs: Any, **options: Any) -> Any:
        module = jax()
        ffi.register(_run_operation)
        arrays = [module.numpy.asarray(one) for one in inputs]
        made = [module.ShapeDtypeStruct(s.shape, s.dtype) for s in self._shapes(*arrays, **options)]
        ranks = [x.ndim for x in arrays] + [len(x.shape) for x in made]
        call = module.ffi.ffi_call(
            ffi.TARGET,
            made,
            vmap_method=self._vmap_method,
            input_output_aliases=self._aliases or None,
            has_side_effect=False,
        )
        results = call(*arrays, operation=self._exported_name(), ranks=",".join(map(str, ranks)))
        results = _varying(results, arrays)
        return results[0] if self._single else tuple(results)

    def _exported_name(self) -> str:
        """The name by which another process finds this operation: its module and variable."""
        module = sys.modules.get(getattr(self._fn, "__module__", "") or "")
        if module is not None and module.__name__ != "__main__":
            for name, value in list(vars(module).items()):
                if value is self:
                    return f"{module.__name__}:{name}"
        return self._name

    def run(self, invocation: ffi.Invocation) -> None:
        """Run the function on the buffers of one execution, once for each item of a batch."""
        inputs, outputs = invocation.inputs, invocation.outputs
        ranks = [int(n) for n in invocation.attributes["ranks"].split(",") if n]
        arrays = [*inputs, *outputs]
        extra = len(arrays[0].shape) - ranks[0] if arrays else 0
        batch = arrays[0].shape[:extra] if arrays else ()
        written = set(range(len(inputs), len(arrays)))
        seen = [i for i in range(len(arrays)) if i not in self._aliases]
        static = self._static | (self.shards.of(invocation) if self.shards is not None else {})
        for index in np.ndindex(*batch):
            values = [
                self._argument(_item(arrays[i], index), i, i in written, len(inputs)) for i in seen
            ]
            if self._stream is not None:
                values.insert(self._stream, as_custream(invocation.stream or 0))
            elif invocation.stream is not None:
                raise DSLCallError(
                    f"'{self._fn.__name__}' has no stream, and JAX orders work by streams",
                    hint="give it a parameter of type cute.Stream, and launch with stream=",
                )
            self._fn(*values, **static)

    def _argument(self, record: ArrayRecord, i: int, written: bool, inputs: int) -> Any:
        if self._convert is None:
            return record
        return self._convert(record, i if not written else i - inputs, written)


def _varying(results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the results as different on all devices of a `shard_map` along whose axes the inputs
    are, which JAX needs to know for gradients. It checks that the inputs have the same axes.
    """
    module = jax()
    axes: set[Any] = set()
    for one in inputs if hasattr(module, "typeof") else ():
        kind = module.typeof(one)
        found = getattr(kind, "manual_axis_type", None)  # JAX 0.10; before, a set
        axes |= getattr(kind, "vma", set()) if found is None else found.varying
    names = tuple(sorted(axes))
    if not names:
        return list(results)
    if hasattr(module.lax, "pcast"):
        return [module.lax.pcast(one, names, to="varying") for one in results]
    return [module.lax.pvary(one, names) for one in results]


def _item(record: ArrayRecord, index: tuple[int, ...]) -> ArrayRecord:
    """The array at `index` of a batch: a view of the modes after it."""
    n = len(index)
    offset = sum(i * d for i, d in zip(index, record.strides, strict=False))
    return ArrayRecord(
        record.address + offset * record.dtype[1] // 8,
        record.dtype,
        record.shape[n:],
        record.strides[n:],
        record.device,
        record.readonly,
    )


def _run_operation(invocation: ffi.Invocation) -> None:
    name = invocation.attributes["operation"]
    found = _registry.get(name)
    if found is None:
        module, _, variable = name.partition(":")
        if module == "local":
            raise DSLCallError(
                "this exported operation belongs to another process",
                hint="keep it in a variable of a module that both processes import",
            )
        found = getattr(importlib.import_module(module), variable)
    if found.shards is not None and invocation.stream is None:
        found.shards.meet(invocation, functools.partial(found.run, invocation), _lock)
        return
    with _lock:  # XLA's threads come at once; a compilation is made by one
        found.run(invocation)


def register() -> None:
    """Make operations known to JAX, as a process must that runs exported ones and makes none."""
    jax()
    ffi.register(_run_operation)


@explains_arguments
def jax_callable(
    fn: Any,
    num_outputs: int = 1,
    *,
    vmap_method: str = "broadcast_all",
    output_dims: Any = None,
    in_out_argnames: Sequence[str] = (),
    **static: Any,
) -> JaxOperation:
    """Make an operation of JAX that calls a `@jit` function: `fn(*inputs, *outputs)`.

    The last `num_outputs` array parameters are the outputs. They have the shape `output_dims` (a
    tuple, or a dict of tuples by name; by default the first input's shape), and the element type
    that `Tensor[dtype, rank]` declares, by default the first input's. `in_out_argnames` names
    parameters that are input and output: the function gets one array, which begins as the input's
    values. A parameter annotated `cute.Stream` gets JAX's stream, which launches on a GPU must use.
    `static` are arguments that are fixed; of a list of symmetric tensors, each device gets its own
    (see docs/jax.md). `vmap_method` is that of `jax.ffi.ffi_call`; with the
    default the function runs once for each item of a batch.

    The result is called with the inputs, also under `jax.jit`, `vmap` and `shard_map`, and returns
    one array or a tuple. `jax.grad` needs a rule: `operation.def_vjp`. Kept in a variable of a
    module, it can be exported. Raises DSLRuntimeError where JAX is not installed, DSLCallError for
    names that `fn` does not have.
    """
    parameters = [p for p in fn.signature.parameters if p.name not in static]
    stream = next((i for i, p in enumerate(parameters) if p.annotation is Stream), None)
    arrays = [p for p in parameters if p.annotation is not Stream]
    for name in in_out_argnames:
        if name not in [p.name for p in arrays]:
            raise DSLCallError(f"'{fn.__name__}' has no parameter '{name}'")
    shared = [i for i, p in enumerate(arrays) if p.name in in_out_argnames]
    count = len(arrays) - num_outputs + len(shared)
    outputs = [arrays[i] for i in shared] + arrays[count:]
    if count < 0 or len(outputs) != num_outputs or any(i >= count for i in shared):
        raise DSLCallError(
            f"'{fn.__name__}' has {len(arrays)} parameters for arrays, of which {num_outputs} "
            "are outputs",
            hint="parameters of in_out_argnames come before those that are outputs alone",
        )

    def shapes(*inputs: Any, output_dims: Any = output_dims) -> list[Any]:
        if len(inputs) != count:
            raise DSLCallError(f"{fn.__name__}: {count} inputs are expected, got {len(inputs)}")
        made = []
        for k, p in enumerate(outputs):
            if k < len(shared):
                like = inputs[shared[k]]
                made.append(jax().ShapeDtypeStruct(like.shape, like.dtype))
                continue
            dims = output_dims.get(p.name) if isinstance(output_dims, Mapping) else output_dims
            dims = inputs[0].shape if dims is None else dims
            dims = (dims,) if isinstance(dims, int) else tuple(dims)
            made.append(jax().ShapeDtypeStruct(dims, _dtype(p.annotation, inputs)))
        return made

    if shared:
        fn = _in_their_order(fn, len(arrays), shared, count, stream)
    return JaxOperation(
        fn,
        shapes,
        single=num_outputs == 1,
        stream=stream,
        aliases={i: k for k, i in enumerate(shared)},
        static=static,
        vmap_method=vmap_method,
    )


class _InTheirOrder:
    """Calls a function whose in-out parameters stand among its inputs: the arrays arrive as inputs
    that are not shared, then outputs, of which the shared ones are first.
    """

    def __init__(self, fn: Any, order: list[int]) -> None:
        functools.update_wrapper(self, fn.fn)
        self._fn, self._order = fn, order

    def __call__(self, *values: Any, **static: Any) -> Any:
        return self._fn(*(values[i] for i in self._order), **static)


def _in_their_order(
    fn: Any, arrays: int, shared: list[int], count: int, stream: int | None
) -> _InTheirOrder:
    alone = [i for i in range(count) if i not in shared]
    arriving = [*alone, *shared, *range(count, arrays)]
    order = [arriving.index(i) for i in range(arrays)]
    if stream is not None:  # a stream is put at its place among the parameters afterwards
        order = [i + (i >= stream) for i in order]
        order.insert(stream, stream)
    return _InTheirOrder(fn, order)


def _dtype(annotation: Any, inputs: Sequence[Any]) -> Any:
    declared = annotation.dtype if isinstance(annotation, DeclaredTensor) else None
    if isinstance(declared, type) and issubclass(declared, Numeric):
        return jax().numpy.dtype(declared.numpy_dtype)
    if not inputs:
        raise DSLCallError(
            "the element type of an output is not known",
            hint="annotate the parameter, for instance cute.Tensor[cute.Float32, 1]",
        )
    return inputs[0].dtype


@explains_arguments
def jax_kernel(
    kernel: Any,
    num_outputs: int = 1,
    *,
    grid: Any,
    block: Any,
    vmap_method: str = "broadcast_all",
    output_dims: Any = None,
    in_out_argnames: Sequence[str] = (),
    smem: int | None = None,
) -> JaxOperation:
    """Make an operation of JAX that launches a kernel: `kernel(*inputs, *outputs)`.

    `grid` and `block` are one to three integers each, or a function of the tensors that returns
    them, as in `grid=lambda x, y: cute.ceil_div(cute.size(x), 128)`. The other arguments are those
    of `jax_callable`.
    """

    def extents(given: Any, tensors: tuple[Any, ...]) -> Any:
        return given(*tensors) if callable(given) else given

    @CUTE.jit
    def host(stream: Stream, *tensors: Any) -> None:
        options = {} if smem is None else {"smem": smem}
        kernel(*tensors).launch(
            grid=extents(grid, tensors), block=extents(block, tensors), stream=stream, **options
        )

    functools.update_wrapper(host, kernel.fn)
    named = _OfKernel(host, kernel)
    return jax_callable(
        named,
        num_outputs,
        vmap_method=vmap_method,
        output_dims=output_dims,
        in_out_argnames=in_out_argnames,
    )


class _OfKernel:
    """The host function of a kernel, with the kernel's parameters after the stream."""

    def __init__(self, host: Any, kernel: Any) -> None:
        functools.update_wrapper(self, kernel.fn)
        self.fn, self._host = kernel.fn, host
        first = host.signature.parameters[0]
        self.signature = _Parameters([first, *kernel.signature.parameters])

    def __call__(self, *values: Any) -> Any:
        return self._host(*values)


class _Parameters:
    def __init__(self, parameters: list[Any]) -> None:
        self.parameters = parameters


@explains_arguments
def donate(array: Any) -> HostTensor:
    """Give a JAX array away to be written: an argument of `@jit` functions.

    JAX arrays are immutable, and JAX shares their memory between arrays, caches and constants: pass
    one that nothing else uses, and do not read it as it was before. Raises DSLTypeError for what is
    no array.
    """
    record = ArrayRecord.of(array)
    record.readonly = False
    return HostTensor(record, None, False)
