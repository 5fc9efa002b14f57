"""Timelines for ui.perfetto.dev: a track for each warp, for TMA and for the tensor cores.

The file is Chrome's trace event format, which Perfetto reads. Times are those of a prediction's
replay, in microseconds; a process is a block, a thread is a track.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from basedsl_cute.sim.profiling.replay import Slice


def write_timeline(path: str | Path, slices: list[Slice], clock: float) -> Path:
    """Write slices in cycles of `clock` Hz as a file for Perfetto, and return its path."""
    events: list[dict[str, Any]] = []
    tracks: dict[tuple[int, str], int] = {}
    for one in slices:
        key = one.block, one.track
        if key not in tracks:
            tracks[key] = len(tracks)
            names = {"process_name": f"block {one.block}", "thread_name": one.track}
            for name, shown in names.items():
                events.append(
                    {"ph": "M", "pid": one.block, "tid": tracks[key], "name": name,
                     "args": {"name": shown}}
                )  # fmt: skip
        events.append(
            {"ph": "X", "pid": one.block, "tid": tracks[key], "name": one.name,
             "ts": one.start / clock * 1e6, "dur": one.length / clock * 1e6,
             "args": {"line": one.line, "cycles": round(one.length)}}
        )  # fmt: skip
    Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))
    return Path(path)
