"""Plans of gradients of attention, as `flash.plan` has them of attention: later calls for arrays of
one kind look them up, make new arrays and launch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from basedsl_cute.ops.array_libraries import ArrayLibrary
from basedsl_cute.ops.flash.arguments import HeadsView
from basedsl_cute.ops.flash.plan import NewArray
from basedsl_cute.ops.plan_cache import PlanCache, Repeatable

_ALIGNED = 64  # numbers of 256 bytes: where parts of a workspace begin


class GivenGradients(NamedTuple):
    """The arrays of a call, None for those that it does not have, in the order of launches."""

    q: Any
    k: Any
    v: Any
    out: Any
    grad: Any
    lse: Any
    grad_bias: Any
    cu_seqlens_q: Any
    cu_seqlens_k: Any
    alibi: Any
    sinks: Any
    bias: Any


class GradientOptions(NamedTuple):
    """The options of a call that are no arrays, as `attention_backward` has them."""

    scale: Any
    causal: Any
    window: Any
    softcap: Any
    max_seqlen_q: Any
    max_seqlen_k: Any
    layout: Any
    deterministic: Any
    config: Any


class Workspace:
    """Arrays of some shapes, whose first modes are contiguous, in one that each call makes."""

    def __init__(self, shapes: list[tuple[int, ...]], dtype: Any) -> None:
        self.dtype = dtype
        sizes = [-(-math.prod(shape) // _ALIGNED) * _ALIGNED for shape in shapes]
        *self.starts, self.size = itertools.accumulate(sizes, initial=0)
        self.views = []
        for shape in shapes:
            steps = itertools.accumulate(shape[:-1], lambda x, y: x * y, initial=1)
            self.views.append(HeadsView(shape, tuple(steps)))

    def make(self, lib: ArrayLibrary, like: Any) -> Any:
        """A new array for all on the device of `like`."""
        return lib.empty((self.size,), self.dtype, like)

    def viewed(self, lib: ArrayLibrary, like: Any) -> tuple[Any, ...]:
        """All as kernels see them, in a new array."""
        made = self.make(lib, like)
        pairs = zip(self.starts, self.views, strict=True)
        return tuple([lib.view(made[start:], *view) for start, view in pairs])


@dataclass
class GradientPlan(Repeatable):
    """The plan of gradients for arrays with the same extents, strides, types and alignment.

    `views` are those of q, k, v, out, grad and lse, `bias` and `grad_bias` those of the two.
    `grads` are the new arrays for the gradients of q, k and v, of which the first `heads` elements
    are results. `rest` and `static` are the numbers and the static arguments of the launch.
    """

    views: tuple[HeadsView, ...]
    bias: HeadsView | None
    grad_bias: HeadsView | None
    workspace: Workspace
    grads: tuple[NewArray, NewArray, NewArray]
    heads: tuple[int, int, int]
    rest: tuple[Any, ...]
    static: tuple[Any, ...]
    launches: bool  # False where there is nothing to write

    def run(
        self,
        launch: Callable[..., Any],
        lib: ArrayLibrary,
        all_arrays: tuple[Any, ...],
        captured: tuple[Any, ...] = (),
    ) -> tuple[Any, Any, Any]:
        """Compute the gradients for arrays of that kind (see `GivenGradients`), with those that
        functions of the user's captured.
        """
        given = GivenGradients(*all_arrays)
        q = given.q
        made = [one.make(lib, x) for one, x in zip(self.grads, given[:3], strict=True)]
        if self.launches:
            arrays = [lib.view(x, *view) for x, view in zip(given[:6], self.views, strict=True)]
            grads = [lib.view(x, *one.view) for x, one in zip(made, self.grads, strict=True)]
            grad_bias = None
            if self.grad_bias is not None:
                grad_bias = lib.view(given.grad_bias, *self.grad_bias)
            bias = None if self.bias is None else lib.view(given.bias, *self.bias)
            lengths = (given.cu_seqlens_q, given.cu_seqlens_k, None, None)
            extras = (given.alibi, given.sinks, bias)
            every = (
                *arrays, self.workspace.viewed(lib, q), *grads, grad_bias, lengths, extras,
                captured, *self.rest, *self.static, lib.stream(q),
            )  # fmt: skip
            self.launch(launch, every, may_repeat=not captured)
        else:
            for x in made:
                x[...] = 0  # rows of no sequence, if there are any
        of_q, of_k, of_v = (
            x if one.shape[-1] == head else lib.compact(x[..., :head])
            for x, one, head in zip(made, self.grads, self.heads, strict=True)
        )
        return of_q, of_k, of_v

    def run_again(
        self,
        launch: Callable[..., Any],
        lib: ArrayLibrary,
        given: tuple[Any, ...],
        addresses: list[int],
    ) -> tuple[Any, Any, Any]:
        """`run` of a plan that is kept: none of its arrays was copied. They are known to be as in
        that call but for the `addresses` of those that are there.
        """
        if self.repeat is None:
            return self.run(launch, lib, given)
        q = given[0]
        made = [one.make(lib, x) for one, x in zip(self.grads, given[:3], strict=True)]
        workspace = self.workspace.make(lib, q)
        begin = lib.address(workspace)
        self.repeat(
            (
                *addresses[:6],
                *[begin + 4 * start for start in self.workspace.starts],
                *[lib.address(x) for x in made],
                *addresses[6:],
                lib.stream(q),
            )
        )
        of_q, of_k, of_v = made
        return of_q, of_k, of_v


gradient_plans: PlanCache[GradientPlan] = PlanCache()
