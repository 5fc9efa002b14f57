"""Calls that TorchDynamo must not look into."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def unseen_by_dynamo(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with frames, those of a compilation, of a kernel's tracing or of the simulator,
    that are none of TorchDynamo's, where a program has loaded that.
    """

    def run(*args: Any) -> Any:
        dynamo = sys.modules.get("torch._dynamo")
        return (call if dynamo is None else dynamo.disable(call))(*args)

    return run
