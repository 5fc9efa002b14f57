"""Parts that the executors share: tensors among packed arguments, and errors of a native call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import AdaptedArgument, TreeArgument, raise_failed_assertion
from basedsl_cute.device.launch_checks import raise_failed_launch
from basedsl_cute.host.jit_protocol import ProtocolArgument
from basedsl_cute.host.tensor_argument import PointerArgument, TensorArgument


def tensors(arguments: Sequence[Any]) -> list[tuple[int, TensorArgument | PointerArgument]]:
    """The tensors and pointers among the arguments, also inside of trees and protocol objects, each
    with the index of its first value in the packed arguments.
    """
    found: list[tuple[int, TensorArgument | PointerArgument]] = []
    at = 0
    for argument in _flat(arguments):
        if isinstance(argument, TensorArgument | PointerArgument):
            found.append((at, argument))
        at += len(argument.storage)
    return found


def _flat(arguments: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for argument in arguments:
        if isinstance(argument, TreeArgument | ProtocolArgument):
            found += _flat(argument.parts)
        elif isinstance(argument, AdaptedArgument):
            found += _flat([argument.inner])
        else:
            found.append(argument)
    return found


def raise_failure() -> None:
    """Raise the error that this thread's last native call left: of a launch, or of an assertion."""
    raise_failed_launch()
    raise_failed_assertion()
