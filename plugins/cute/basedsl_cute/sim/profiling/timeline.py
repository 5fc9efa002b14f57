"""Timelines for ui.perfetto.dev: a track for each warp and for each asynchronous unit, which are
TMA, cp.async and the tensor cores.

The file is Chrome's trace event format, which Perfetto reads. Times are those of a prediction's
replay, in microseconds; a process is a block, a thread is a track.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from basedsl_cute.sim.profiling.replay import Slice

Launch = tuple[str, list[Slice], float]


def write_timeline(path: str | Path, launches: Sequence[Launch]) -> Path:
    """Write launches, one after another, as a file for Perfetto, and return its path. A launch is
    the kernel's name, its slices, and how many cycles a second has.
    """
    events: list[dict[str, Any]] = []
    tracks: dict[tuple[int, int, str], tuple[int, int]] = {}
    begin, processes = 0.0, dict[tuple[int, int], int]()
    for number, (kernel, slices, clock) in enumerate(launches):
        end = begin
        for one in slices:
            key = number, one.block, one.track
            if key not in tracks:
                process = processes.setdefault((number, one.block), len(processes))
                tracks[key] = process, len(tracks)
                names = {"process_name": f"{kernel}, block {one.block}", "thread_name": one.track}
                for name, shown in names.items():
                    events.append(
                        {"ph": "M", "pid": process, "tid": tracks[key][1], "name": name,
                         "args": {"name": shown}}
                    )  # fmt: skip
            process, track = tracks[key]
            start = begin + one.start / clock * 1e6
            length = one.length / clock * 1e6
            events.append(
                {"ph": "X", "pid": process, "tid": track, "name": one.name, "ts": start,
                 "dur": length, "args": {"line": one.line, "cycles": round(one.length)}}
            )  # fmt: skip
            end = max(end, start + length)
        begin = end
    Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))
    return Path(path)
