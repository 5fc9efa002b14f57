"""`cute.torch.custom_op`: `@jit` functions as operations of PyTorch (`torch.library`)."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from basedsl import DSLCallError, DSLFunction, DSLRuntimeError, Numeric, constexpr_type
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.host.stream import Stream
from basedsl_cute.interop.cuda import as_custream
from basedsl_cute.tensors.tensor import DeclaredTensor, Tensor


@explains_arguments
def custom_op(
    name: str,
    *,
    outputs: Callable[..., Any] | None = None,
    num_outputs: int = 1,
    mutates_args: Sequence[str] = (),
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., Any] | None = None,
) -> Callable[[DSLFunction], Any]:
    """Make an operation of PyTorch, `name` ("library::name"), of a `@jit` function.

    The function's parameters are the operation's, then the outputs. `outputs(*inputs)` allocates
    them, `num_outputs` of them: one tensor or a tuple, as in
    `outputs=lambda x: torch.empty_like(x)`; it also tells `torch.compile` their shapes. Without it
    there are none. `mutates_args` names inputs that are written instead. A parameter annotated
    `cute.Stream` gets PyTorch's current stream; a launch on a GPU must use it. Numbers are
    annotated `cute.Int32`, `float`, `cute.Constexpr[int]` and so on, all else is a tensor.

    `backward(ctx, *gradients)` and `setup_context(ctx, inputs, output)` are those of
    `torch.library.register_autograd`; without them the operation is not differentiated.

    The result is a `torch.library.CustomOpDef`, under `torch.compile(fullgraph=True)` too. Raises
    DSLRuntimeError where PyTorch is not installed, DSLCallError for a function that is none of
    `@jit`, and for names in `mutates_args` that it does not have.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise DSLRuntimeError("PyTorch is not installed", hint="pip install torch") from None

    if not isinstance(name, str) or name.count("::") != 1:
        raise DSLCallError(
            f"custom_op takes the operation's name, not {name!r}",
            hint='with the library that it is in: "my_library::double"',
        )

    def decorate(fn: DSLFunction) -> Any:
        if not isinstance(fn, DSLFunction) or fn.kind != "jit":
            raise DSLCallError("custom_op decorates a @jit function", hint="put it above @cute.jit")
        parameters = list(fn.signature.parameters)
        stream = next((i for i, p in enumerate(parameters) if p.annotation is Stream), None)
        arrays = [p for p in parameters if p.annotation is not Stream]
        unknown = set(mutates_args) - {p.name for p in arrays}
        if unknown:
            raise DSLCallError(f"'{fn.__name__}' has no parameter '{min(unknown)}'")
        made = _Outputs(outputs, num_outputs, arrays)
        inputs = arrays[: len(arrays) - made.count]
        schema = f"({', '.join(_typed(p, mutates_args) for p in inputs)}) -> {made.schema}"

        def run(*values: Any) -> Any:
            new = made.allocate(values)
            given = [*values, *new]
            if stream is not None:
                given.insert(stream, _current_stream(torch, given))
            with torch.no_grad():
                fn(*given)
            return made.result(new)

        functools.update_wrapper(run, fn.fn)
        vars(run).pop("__wrapped__")
        operation = torch.library.custom_op(
            name, run, mutates_args=tuple(mutates_args), schema=schema
        )
        operation.register_fake(lambda *values: made.result(made.allocate(values)))
        if backward is not None:
            operation.register_autograd(backward, setup_context=setup_context)
        return operation

    return decorate


class _Outputs:
    """The tensors that an operation returns."""

    def __init__(
        self, allocate: Callable[..., Any] | None, count: int, arrays: Sequence[Any]
    ) -> None:
        self._allocate = allocate
        self.count = 0 if allocate is None else count
        self._single = self.count == 1
        if self.count > len(arrays):
            raise DSLCallError(f"{self.count} outputs are declared for {len(arrays)} parameters")

    @property
    def schema(self) -> str:
        if self.count == 0:
            return "()"
        return "Tensor" if self._single else f"({', '.join(['Tensor'] * self.count)})"

    def allocate(self, inputs: Sequence[Any]) -> list[Any]:
        if self._allocate is None:
            return []
        made = self._allocate(*inputs)
        found = list(made) if isinstance(made, tuple) else [made]
        if len(found) != self.count:
            raise DSLCallError(f"outputs= made {len(found)} tensors, and {self.count} are declared")
        return found

    def result(self, made: list[Any]) -> Any:
        if not made:
            return None
        return made[0] if self._single else tuple(made)


def _typed(parameter: Any, mutated: Sequence[str]) -> str:
    """A parameter in PyTorch's schema language."""
    kind = parameter.annotation
    static = constexpr_type(kind)
    kind = kind if static is None else static
    text = "Tensor"
    if isinstance(kind, type) and issubclass(kind, Numeric):
        text = "float" if kind.is_float else "bool" if kind.__name__ == "Boolean" else "SymInt"
    elif kind in (int, float, bool, str):
        text = {int: "SymInt", float: "float", bool: "bool", str: "str"}[kind]
    elif kind is not Tensor and not isinstance(kind, DeclaredTensor) and static is not None:
        text = "int"
    if static is not None and text == "SymInt":
        text = "int"  # compiled code depends on it
    if text == "Tensor" and parameter.name in mutated:
        text = "Tensor(a!)"
    return f"{text} {parameter.name}"


def _current_stream(torch: Any, values: Sequence[Any]) -> Any:
    on_gpu = next((v for v in values if getattr(v, "is_cuda", False)), None)
    if on_gpu is None:
        return as_custream(0)
    return as_custream(torch.cuda.current_stream(on_gpu.device).cuda_stream)
