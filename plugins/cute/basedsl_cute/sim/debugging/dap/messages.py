"""Messages of the Debug Adapter Protocol: JSON after a header that says its length in bytes."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from typing import Any, BinaryIO

Message = dict[str, Any]


class ProtocolError(Exception):
    """The bytes that came are no message of the protocol."""


class RequestError(Exception):
    """A request cannot be fulfilled; its text is what the user reads."""


def read_message(stream: BinaryIO) -> Message | None:
    """Read the next message, None at the end of the stream. Raises ProtocolError."""
    length = None
    while (header := stream.readline()).strip():
        name, _, value = header.partition(b":")
        if name.strip().lower() == b"content-length":
            try:
                length = int(value)
            except ValueError:
                raise ProtocolError(f"a length is a number of bytes, not {value!r}") from None
    if not header:
        return None
    if length is None:
        raise ProtocolError("a header without Content-Length")
    body = stream.read(length)
    if len(body) < length:
        return None
    try:
        message = json.loads(body)
    except ValueError as error:
        raise ProtocolError(f"a body that is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError("a body that is no object")
    return message


class Sender:
    """The side of a connection that writes: it numbers messages, from any thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Send a message. One to a peer that has gone is dropped: its reader sees the end."""
        with self._lock:
            body = json.dumps({**message, "seq": next(self._numbers)}).encode()
            with contextlib.suppress(OSError, ValueError):
                self._stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                self._stream.flush()

    def event(self, name: str, **body: Any) -> None:
        """Send an event."""
        self.send({"type": "event", "event": name, "body": body})

    def respond(self, request: Message, body: Message | None = None) -> None:
        """Answer a request that is fulfilled."""
        self.send({**_answer(request), "success": True, "body": body or {}})

    def fail(self, request: Message, text: str) -> None:
        """Answer a request that is not."""
        error = {"id": 1, "format": "{text}", "variables": {"text": text}, "showUser": True}
        self.send({**_answer(request), "success": False, "message": text, "body": {"error": error}})


def _answer(request: Message) -> Message:
    number, command = request.get("seq", 0), request.get("command", "")
    return {"type": "response", "request_seq": number, "command": command}
