"""Symmetric tensors as arguments of operations under `shard_map`: each device gets its own.

Simulated devices begin an operation together, as ranks of their world; GPUs launch, and their
kernels meet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from basedsl import DSLCallError, DSLRuntimeError
from basedsl_cute.distributed import SymmetricTensor
from basedsl_cute.interop.jax.ffi import Invocation

LIMIT = 60.0
"""Seconds that simulated devices wait for each other."""


class _Calls:
    """The calls of one execution, by device, until all are there."""

    def __init__(self) -> None:
        self.by_device: dict[int, Callable[[], None]] = {}
        self.is_done = False
        self.error: BaseException | None = None


class ShardArguments:
    """The arguments of an operation that are symmetric tensors: one, where a process has one GPU,
    or a list with that of each device, in the order of their numbers.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._counts = {len(value) for value in given.values() if not _is_one(value)}
        if len(self._counts) > 1:
            raise DSLCallError(
                f"lists of symmetric tensors for {' and '.join(map(str, self._counts))} devices",
                hint="each list has one for each device of the process",
            )
        self._calls: dict[int, _Calls] = {}
        self._changed = threading.Condition()

    def of(self, invocation: Invocation) -> dict[str, Any]:
        """Return the arguments of the device that executes the operation. Raises DSLCallError for a
        device that has none.
        """
        if not self._counts:
            return dict(self._given)
        device = self._device(invocation)
        return {n: v if _is_one(v) else v[device] for n, v in self._given.items()}

    def meet(self, invocation: Invocation, call: Callable[[], None], lock: threading.Lock) -> None:
        """Run the calls of all simulated devices at the same time, when the last one is there: by
        its thread, under `lock`. Raises the first error of a rank, and DSLRuntimeError if some
        device does not come.
        """
        if any(map(_is_one, self._given.values())):
            raise DSLCallError(
                "simulated devices get a list of symmetric tensors, one for each",
                hint="w=simulated(world, ...), for a world of as many ranks as there are devices",
            )
        worlds = {id(one.world): one.world for value in self._given.values() for one in value}
        (world, *others) = worlds.values()
        if world is None or others:
            raise DSLCallError(
                "on the CPU, symmetric tensors are those of one world of simulated ranks",
                hint="cute.distributed.simulated(world, shape, dtype)",
            )
        key, device = invocation.run_id(), self._device(invocation)
        with self._changed:
            calls = self._calls.setdefault(key, _Calls())
            if device in calls.by_device:
                raise DSLRuntimeError(
                    f"device {device} begins the operation while another call of it waits",
                    hint="calls that share symmetric tensors depend on each other's results",
                )
            calls.by_device[device] = call
            is_last = len(calls.by_device) == world.count
            if is_last:
                del self._calls[key]
            elif not self._changed.wait_for(lambda: calls.is_done, LIMIT):
                self._calls.pop(key, None)
                missing = sorted(set(range(world.count)) - set(calls.by_device))
                raise DSLRuntimeError(
                    f"device {device} waited {LIMIT:g} s for devices {missing} to begin",
                    hint="all devices of the list call the operation, in one shard_map",
                )
        if is_last:
            try:
                with lock:
                    world.run(lambda rank: calls.by_device[rank]())
            except BaseException as error:
                calls.error = error
            with self._changed:
                calls.is_done = True
                self._changed.notify_all()
        if calls.error is not None:
            raise calls.error

    def _device(self, invocation: Invocation) -> int:
        (count,), number = self._counts, invocation.device()
        if number >= count:
            raise DSLCallError(
                f"device {number} executes the operation, and the list has {count} symmetric "
                "tensors",
                hint="one for each device of the process, in the order of their numbers",
            )
        return number


def shard_arguments(static: Mapping[str, Any]) -> ShardArguments | None:
    """Return those of the `static` arguments that are symmetric tensors, or lists of them; None if
    there are none.
    """
    found = {n: v for n, v in static.items() if _is_one(v) or _is_list(v)}
    return ShardArguments(found) if found else None


def _is_one(value: Any) -> bool:
    return isinstance(value, SymmetricTensor)


def _is_list(value: Any) -> bool:
    is_sequence = isinstance(value, (list, tuple)) and bool(value)
    return is_sequence and all(map(_is_one, value))
