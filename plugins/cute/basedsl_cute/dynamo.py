"""Calls that TorchDynamo must not look into."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from basedsl import mark_internal


def unseen_by_dynamo(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with frames, those of a compilation, of a kernel's tracing or of the simulator,
    that are none of TorchDynamo's, where a program has loaded that.
    """

    def run(*args: Any) -> Any:
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is None:
            return call(*args)
        _hide_frames_of(dynamo.eval_frame.__file__)
        return dynamo.disable(call)(*args)

    return run


@functools.cache
def _hide_frames_of(file: str) -> None:
    """Leave the frames of a file, in which TorchDynamo passes calls on, out of users' errors."""
    mark_internal(file)
