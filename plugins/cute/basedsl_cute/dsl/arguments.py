"""The argument types of cute's own values: tensors, streams, events, and objects by protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl import ArgumentType, argument_type
from basedsl_cute.host.event import Event, EventArgument, is_event
from basedsl_cute.host.jit_protocol import protocol_argument
from basedsl_cute.host.kept_argument import kept_argument
from basedsl_cute.host.stream import Stream, is_stream, stream_argument
from basedsl_cute.host.tensor_argument import tensor_argument

if TYPE_CHECKING:
    from basedsl_cute.dsl.cute import Cute


def argument_type_of(language: Cute, value: Any, annotation: Any, name: str) -> ArgumentType | None:
    """Return the argument type of `value`, given to the parameter `name`; None for a value that is
    not cute's.
    """
    if hasattr(value, "dsl_kept"):
        return kept_argument(value, lambda form: argument_type(language, form, annotation, name))
    if annotation is Stream or is_stream(value):
        return stream_argument(value)
    if annotation is Event or is_event(value):
        return EventArgument()
    by_protocol = protocol_argument(value, name)
    if by_protocol is not None:
        return by_protocol
    return tensor_argument(value, annotation, name)
