"""Operations of PyTorch with gradients, which calls on plain tensors take a short way to.

`torch.ops.basedsl_cute.<name>` is what `torch.compile`, fake tensors, modes and transforms see. A
call of one costs 200 us on the host, though, which is longer than most of these kernels take. So
where none of them is in the way, a call is that of a `torch.autograd.Function` of the same parts.
This module imports PyTorch; `ops` import it when they get tensors of PyTorch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from basedsl import DSLTypeError

_PLAIN = frozenset(
    (torch.Tensor, torch.nn.Parameter, type(None), str, bool, int, float)
)  # types of inputs that have no part in the call but their values


class TorchOperation:
    """The operation `torch.ops.basedsl_cute.<name>`.

    Parameters:
        schema: its parameters and results, in PyTorch's words.
        run: computes the results; it is called without recording gradients.
        fake: makes results without elements.
        setup: `setup(ctx, inputs, output)`, which keeps what `backward(ctx, *grads)` needs to
            return the gradients of the inputs. Without them a gradient is an error. Second
            derivatives are those of the operations that `backward` calls.
        fill: makes the operation's results, which are all tensors, of those of `run`, which may
            leave some out. Short calls return the latter.
    """

    def __init__(
        self,
        name: str,
        schema: str,
        run: Callable[..., Any],
        fake: Callable[..., Any],
        setup: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
        fill: Callable[..., Any] | None = None,
    ) -> None:
        def without_gradients(*inputs: Any) -> Any:
            with torch.no_grad():
                return run(*inputs)

        def filled(*inputs: Any) -> Any:
            with _as_given():
                found = without_gradients(*inputs)
            return found if fill is None else fill(found, *inputs)

        self._name = name
        self._run = without_gradients
        self._run_as_it_is = run
        self._operation: Any = torch.library.custom_op(
            f"basedsl_cute::{name}", filled, mutates_args=(), schema=schema
        )
        self._operation.register_fake(fake)
        self._function: Any = None
        if setup is not None and backward is not None:
            self._operation.register_autograd(backward, setup_context=setup)
            self._function = _function_of(name, run, setup, backward)
            self._apply = _apply_of(self._function)
        else:
            self._operation.register_autograd(_refused(name))

    def __call__(self, *inputs: Any) -> Any:
        if not _is_short(inputs):
            if not torch.compiler.is_compiling():
                self._check(inputs)
            return self._operation(*inputs)
        if not torch.is_grad_enabled():
            return self._run_as_it_is(*inputs)
        if not any(_requires_grad(x) for x in inputs):
            return self._run(*inputs)
        if self._function is None:
            return self._operation(*inputs)  # says that it has no gradient
        return self._apply(*inputs)

    def _check(self, inputs: tuple[Any, ...]) -> None:
        """Raise DSLTypeError for inputs that PyTorch's dispatcher would refuse with all they hold:
        arrays of other libraries, and functions.
        """
        for x in inputs:
            if callable(x) or (hasattr(x, "__array__") and not isinstance(x, torch.Tensor)):
                raise DSLTypeError(
                    f"{self._name} of tensors that require gradients takes no {type(x).__name__}",
                    hint="pass tensors of PyTorch, or call it under torch.no_grad()",
                )


# The context in which functions of `ops` do not ask for autocast: the operation's caller has.
_as_given = getattr(torch._C, "_DisableAutocast", contextlib.nullcontext)


def _refused(name: str) -> Callable[..., Any]:
    """The backward of an operation that has no gradient; most are gradients of others."""
    of, _, part = name.rpartition("_")

    def backward(ctx: Any, *grads: Any) -> Any:
        if part in ("backward", "gradient", "slope"):
            raise DSLTypeError(f"{of} has no second derivative", hint="create_graph=False")
        raise DSLTypeError(
            f"{of} has no gradient", hint="call it under torch.no_grad(), or pass x.detach()"
        )

    return backward


def _function_of(name: str, run: Any, setup: Any, backward: Any) -> Any:
    """The autograd function; PyTorch binds a signature at each call of one with a setup apart. Its
    `forward` runs without recording gradients.
    """

    def forward(ctx: Any, *inputs: Any) -> Any:
        output = run(*inputs)
        setup(ctx, inputs, output)
        return output

    def gradients(ctx: Any, *grads: Any) -> Any:
        return backward(ctx, *grads)

    parts = {
        "forward": staticmethod(forward),
        "backward": staticmethod(gradients),
    }
    return type(name, (torch.autograd.Function,), parts)


def _apply_of(function: Any) -> Any:
    """The function's `apply` below that which looks for transforms: a short call has none."""
    below = super(torch.autograd.Function, function)
    return getattr(below, "apply", function.apply)


def _requires_grad(x: Any) -> bool:
    return getattr(x, "requires_grad", False) is True


def _is_short(inputs: tuple[Any, ...]) -> bool:
    """True if nothing but autograd is to see the call: no compiler, tracer, mode or transform."""
    return (
        _PLAIN.issuperset(map(type, inputs))
        and not torch.compiler.is_compiling()
        and not _is_watched()
    )


def _watcher() -> Callable[[], Any]:
    """The function that says if something watches or transforms calls of PyTorch; one that always
    says so, where this version has other functions to ask.
    """
    try:
        modes = torch._C._len_torch_dispatch_stack
        transforms = torch._C._functorch.peek_interpreter_stack
        tracing = torch._C._get_tracing_state
    except AttributeError:
        return lambda: True
    return lambda: modes() or transforms() or tracing()


_is_watched = _watcher()
