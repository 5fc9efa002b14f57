"""Launches of collectives: the checks and choices of a call, made once for equal calls.

A collective of a few microseconds costs as much on the host. So a workspace keeps what it found for
PyTorch tensors of the same types, shapes and alignments: a later call looks it up, and runs the
compiled code. A call like the last one is not even looked up: the compiled code checks its arrays.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLCallError, DSLTypeError, from_dlpack
from basedsl_cute.distributed import SymmetricTensor
from basedsl_cute.ops.plan_cache import PlanCache

_compiled: dict[Any, Any] = {}  # functions for a GPU, whose calls run no Python


class Flat:
    """An argument as a flat array, with its element type and sizes."""

    is_on_gpu = False

    def __init__(self, x: Any) -> None:
        record = ArrayRecord.of(x)
        expected = 1
        for n, d in zip(reversed(record.shape), reversed(record.strides), strict=True):
            if n != 1 and d != expected and 0 not in record.shape:
                raise DSLTypeError(
                    f"an array of strides {record.strides} is not contiguous",
                    hint="pass x.contiguous()",
                )
            expected *= n
        self.array = x if len(record.shape) == 1 else x.reshape(-1)
        self.address, self.dtype = record.address, from_dlpack(*record.dtype)
        if record.is_on_gpu:
            self.is_on_gpu = True
        align = min(16, record.address & -record.address or 16)
        self.kind = record.dtype, align, record.device, expected >= 1 << 31
        self.count = expected
        self.rows = record.shape[0] if record.shape else 1
        self.row = math.prod(record.shape[1:])
        self.nbytes = expected * self.dtype.width // 8
        if self.dtype.width < 8:
            raise DSLTypeError(f"collectives take elements of whole bytes, not {self.dtype}")


@dataclass
class Launch:
    """A `@jit` function, and its arguments between the arrays and the stream: a workspace's
    `memory` and `numbers`; then `statics`.
    """

    function: Any
    memory: SymmetricTensor
    numbers: tuple[Any, ...]
    statics: tuple[Any, ...]
    code: Any = None
    reshapes: bool = False  # some array is not flat

    def run(self, arrays: tuple[Flat, ...], stream: int) -> None:
        """Launch it on arrays, and on the stream of a handle."""
        given = (*(one.array for one in arrays), self.memory, *self.numbers, stream)
        if not arrays[0].is_on_gpu:
            self.function(*given, *self.statics)
            return
        # The rank of a workspace is dynamic, its number of slots is not.
        kinds = (one.kind for one in arrays)
        key = self.function, self.memory.num_ranks, self.memory.slots, self.statics, *kinds
        self.code = _compiled.get(key)
        if self.code is None:
            self.code = _compiled[key] = cute.compile(self.function, *given, *self.statics)
        self.code(*given)


class Launches:
    """The launches of a workspace. `stream` gives the handle of the current stream."""

    def __init__(self, stream: Callable[[], int]) -> None:
        self._stream = stream
        self._kept: PlanCache[Launch] = PlanCache()
        self._last: _Last | None = None
        self._guesses = True  # until one was wrong

    def call(self, plan: Callable[..., Launch | None], arrays: tuple[Any, ...], *more: Any) -> None:
        """Run the launch that `plan` makes of the arrays, `Flat`, and of what it takes `more`; none
        if it makes none. Equal calls on PyTorch tensors run the one that was made first.
        """
        last = self._last
        if last is not None and last.plan == plan and last.more == more and last.fits(arrays):
            try:
                last.code(*arrays, *last.given, self._stream())
                return
            except (DSLCallError, DSLTypeError):  # not for these arrays, after all
                self._last, self._guesses = None, False  # an error takes longer than a look-up
        key = _key(arrays)
        if key is not None:
            key = plan.__name__, more, key
            launch = self._kept.get(key)
            if launch is not None:
                if launch.reshapes:
                    arrays = tuple([x.view(-1) for x in arrays])
                launch.code(*arrays, launch.memory, *launch.numbers, self._stream())
                if self._guesses and not launch.reshapes and min(x.numel() for x in arrays) > 1:
                    self._last = _Last(plan, more, launch, arrays)
                return
        given = tuple(Flat(x) for x in arrays)
        launch = plan(*given, *more)
        if launch is None:
            return
        launch.run(given, self._stream())
        if key is not None and launch.code is not None:
            launch.reshapes = any(x.dim() != 1 for x in arrays)
            self._kept.keep(key, launch)


class _Last:
    """The last call, on flat tensors of PyTorch. The compiled code has no sizes of other tensors;
    it checks their element types, strides, devices, and the alignment of their addresses.
    """

    __slots__ = ("code", "counts", "given", "kind", "more", "plan")

    def __init__(
        self, plan: Any, more: tuple[Any, ...], launch: Launch, arrays: tuple[Any, ...]
    ) -> None:
        self.plan, self.more, self.code = plan, more, launch.code
        self.given = (launch.memory, *launch.numbers)
        self.kind = type(arrays[0])
        self.counts = [x.numel() for x in arrays]

    def fits(self, arrays: tuple[Any, ...]) -> bool:
        """Return True if tensors have the sizes of those of the call. One element may be negated
        and have stride 1 (the imaginary part of a conjugate), several elements may not.
        """
        kind, counts = self.kind, iter(self.counts)
        for x in arrays:
            if type(x) is not kind or x.numel() != next(counts):
                return False
        return True


def _key(arrays: tuple[Any, ...]) -> Any:
    """All that a launch depends on, of contiguous tensors of PyTorch; None for other arrays."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    tensor: Any = torch.Tensor
    found: tuple[Any, ...] = ()
    for x in arrays:
        if type(x) is not tensor or x.is_neg() or not x.is_contiguous():
            return None
        found += (x.shape, x.dtype, x.get_device(), x.data_ptr() & 15)
    return found
