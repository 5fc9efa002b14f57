"""The output of a step as plain data: readable later, cheap to keep.

A module is kept as MLIR bytecode (1.5 ms for 5,000 ops, where printing costs 9) and printed only
when somebody asks. No live operation is kept: touching one after its context is gone crashes the
interpreter.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from basedsl.mlir import MLIRContext

MLIR = "mlir"
TEXT = "text"
BINARY = "binary"

# How to read data of other kinds that steps hand out, e.g. LLVM bitcode.
_readers: dict[str, Callable[[bytes], str]] = {}


def register_reader(kind: str, read: Callable[[bytes], str]) -> None:
    """Register the function that turns data of `kind` into text for people."""
    _readers[kind] = read


@dataclass(frozen=True)
class Snapshot:
    """The output of one step: `data` of a `kind`, and the suffix of a file with it.

    `kind` is "mlir" (bytecode), "text", "binary", or one given to `register_reader`. `context` is
    only used to print MLIR, so a snapshot without it (one read from a cache) keeps its bytes.
    """

    data: bytes | str
    kind: str
    suffix: str = ""
    context: MLIRContext | None = None

    def __repr__(self) -> str:
        return f"Snapshot({self.kind}, {len(self.data)} {'B' if self.is_binary else 'characters'})"

    @property
    def is_binary(self) -> bool:
        return isinstance(self.data, bytes)

    def text(self, *, locations: bool = False) -> str:
        """Return text for people: the module's assembly (with Python lines if `locations`), or the
        text.

        Binary data with no reader is described, not shown.
        """
        if isinstance(self.data, str):
            return self.data
        if self.kind == MLIR and self.context is not None:
            return print_bytecode(self.data, self.context, locations=locations)
        read = _readers.get(self.kind)
        return f"<{len(self.data)} bytes of {self.kind}>\n" if read is None else read(self.data)

    def module(self) -> Any:
        """Return the module, parsed anew: what is done to it changes nothing else. Raises
        ValueError for other kinds, and for one whose bindings are not known.
        """
        if self.kind != MLIR or self.context is None:
            raise ValueError(f"{self!r} is no module that can be parsed")
        with self.context.entered():
            return self.context.bindings.ir.Module.parse(self.data)

    def save(self, stem: Path) -> Path:
        """Write what `text()` shows, or the bytes where there is no text for them. Returns the
        file: `stem`, a path, with the suffix behind it.
        """
        if isinstance(self.data, bytes) and self.kind != MLIR and self.kind not in _readers:
            path = stem.with_name(stem.name + (self.suffix or ".bin"))
            path.write_bytes(self.data)
        else:
            path = stem.with_name(stem.name + (self.suffix or _suffixes.get(self.kind, ".txt")))
            path.write_text(self.text(locations=True), encoding="utf-8")
        return path


_suffixes = {MLIR: ".mlir", TEXT: ".txt"}


def of_operation(op: Any, context: MLIRContext) -> Snapshot:
    """Take a snapshot of `op`, a module or another operation isolated from above."""
    buffer = io.BytesIO()
    op.operation.write_bytecode(buffer)
    return Snapshot(buffer.getvalue(), MLIR, ".mlir", context)


def of_artifact(value: bytes | str, suffix: str = "") -> Snapshot:
    """Take a snapshot of text or bytes that a step produced."""
    return Snapshot(value, TEXT if isinstance(value, str) else BINARY, suffix)


def print_bytecode(data: bytes, context: MLIRContext, *, locations: bool = False) -> str:
    """Print a module's bytecode as assembly text."""
    ir = context.bindings.ir
    with context.entered():
        try:
            module = ir.Module.parse(data)
        except ir.MLIRError as error:  # left by a step that asked not to be verified
            return f"// not a valid module: {str(error).splitlines()[-1].strip()}\n"
        text: str = module.operation.get_asm(enable_debug_info=locations)
        return text if text.endswith("\n") else text + "\n"
