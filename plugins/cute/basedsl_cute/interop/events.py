"""`cute.record_events`: the events of kernels, collected and written for Perfetto."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from basedsl import DSLCallError
from basedsl_cute.arch.events import EVENT_WORDS, HEADER_WORDS, NAME_BYTES
from basedsl_cute.device import driver
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.dsl.machine import current_target

_VARIABLE = "CUTE_DSL_TRACE_BUFFER"


@dataclass(frozen=True)
class RecordedEvent:
    """A region of code that one warp was in: `start` and `end` in nanoseconds of the GPU's clock,
    or in ticks of the simulator's. `block` is the block's linear index in the grid.
    """

    name: str
    kernel: str
    block: int
    warp: int
    start: int
    end: int


class Events:
    """The events that `record_events` collected, in the order of their starts. `dropped` are those
    that there was no room for.
    """

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.events: list[RecordedEvent] = []
        self.dropped = 0

    def __iter__(self) -> Iterator[RecordedEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def read(self, words: Any) -> None:
        """Take the events from a buffer of 64-bit words."""
        count, room = int(words[0]), int(words[1])
        self.dropped = max(0, count - room)
        rows = words[HEADER_WORDS:].reshape(-1, EVENT_WORDS)[: min(count, room)]
        found = [_event(row) for row in rows]
        self.events = sorted(found, key=lambda one: (one.start, one.block, one.warp))

    def to_chrome(self) -> dict[str, Any]:
        """Return the events in Chrome's trace format, with a track for each warp of each block."""
        first = min((one.start for one in self.events), default=0)
        scale = 1e-3 if self.unit == "ns" else 1.0  # the format counts microseconds
        found: list[dict[str, Any]] = []
        for block in sorted({one.block for one in self.events}):
            arguments: dict[str, Any] = {"name": f"block {block}"}
            found.append({"name": "process_name", "ph": "M", "pid": block, "args": arguments})
        for block, warp in sorted({(one.block, one.warp) for one in self.events}):
            arguments = {"name": f"warp {warp}"}
            found.append(
                {"name": "thread_name", "ph": "M", "pid": block, "tid": warp, "args": arguments}
            )
        for one in self.events:
            found.append(
                {
                    "name": one.name,
                    "cat": one.kernel,
                    "ph": "X",
                    "pid": one.block,
                    "tid": one.warp,
                    "ts": (one.start - first) * scale,
                    "dur": (one.end - one.start) * scale,
                }
            )
        return {
            "traceEvents": found,
            "otherData": {"clock": self.unit, "dropped": self.dropped},
        }

    def save(self, path: str | Path) -> Path:
        """Write a file that ui.perfetto.dev and chrome://tracing open; return its path."""
        target = Path(path)
        target.write_text(json.dumps(self.to_chrome()), encoding="utf-8")
        return target


def _event(row: Any) -> RecordedEvent:
    size = NAME_BYTES // 8
    name, kernel = (row[i : i + size].tobytes().rstrip(b"\0") for i in (0, size))
    block, warp, start, end = (int(word) for word in row[2 * size :])
    return RecordedEvent(name.decode(), kernel.decode(errors="replace"), block, warp, start, end)


@contextlib.contextmanager
def record_events(capacity: int = 1 << 16) -> Iterator[Events]:
    """Collect the events of kernels that calls in the `with` block launch: regions of `cute.trace`,
    and the waits of pipelines.

        with cute.record_events() as events:
            matmul(a, b, c)
        events.save("trace.json")

    Functions are compiled anew for it, except for those that `cute.compile` has compiled before;
    the code outside is as if there was no `cute.trace`. `capacity` is the most events that there is
    room for, 96 bytes each. Events are there after the block, which waits for the kernels. One
    block at a time records in a process. Raises DSLCallError for a `capacity` below 1 and for a
    second block.
    """
    if type(capacity) is not int or capacity < 1:
        raise DSLCallError(f"the capacity is a number of events, not {capacity!r}")
    if CUTE.options.trace_buffer:
        raise DSLCallError("events are recorded already: record_events() is not nested")
    words = np.zeros(HEADER_WORDS + capacity * EVENT_WORDS, np.int64)
    words[1] = capacity
    on_gpu = current_target().is_gpu
    events = Events("ns" if on_gpu else "ticks")
    with _on_gpu(words) if on_gpu else _simulated(words) as address:
        os.environ[_VARIABLE] = str(address)
        try:
            yield events
        finally:
            del os.environ[_VARIABLE]
    events.read(words)


@contextlib.contextmanager
def _simulated(words: Any) -> Iterator[int]:
    from basedsl_cute.sim.machine.memory import reachable

    with reachable(words):
        yield words.ctypes.data


@contextlib.contextmanager
def _on_gpu(words: Any) -> Iterator[int]:
    driver.require("recording events")
    driver.ensure_context()
    address = driver.allocate(words.nbytes)
    try:
        driver.copy_to_device(address, words.ctypes.data, words.nbytes)
        yield address
        driver.synchronize()
        driver.copy_to_host(words.ctypes.data, address, words.nbytes)
    finally:
        driver.free(address)
