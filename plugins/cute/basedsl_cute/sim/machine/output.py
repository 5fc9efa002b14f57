"""Output of printf in kernels: formatted as C does, in an order that no scheduling changes.

Texts come out by block, then by the barriers passed, then by warp, then as the warp printed them.
"""

from __future__ import annotations

import re
import sys
from typing import Any

_CONVERSION = re.compile(
    r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|j|z|t|L)?([diouxXcsfFeEgGaAp%])"
)


class KernelOutput:
    """The texts that one launch has printed and not yet written out."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, int, int, str]] = []

    def add_text(self, block: int, epoch: int, warp: int, text: str) -> None:
        """Keep a text by a warp of a block that has passed `epoch` barriers of all threads."""
        self._parts.append((block, epoch, warp, len(self._parts), text))

    def flush(self) -> None:
        """Write everything to standard output."""
        if self._parts:
            parts, self._parts = sorted(self._parts), []
            sys.stdout.write("".join(part[-1] for part in parts))
            sys.stdout.flush()


def conversions(fmt: str) -> list[str]:
    """The conversions in `fmt` that take an argument: length and letter, or `*` for a width."""
    out = []
    for _, width, precision, length, kind in _CONVERSION.findall(fmt):
        out += ["*"] * ((width == "*") + (precision == "*"))
        if kind != "%":
            out.append(length + kind)
    return out


def format_c(fmt: str, args: list[Any], bits: list[int]) -> str:
    """Format `args` as C's printf does; `bits` are their widths, for unsigned forms."""
    position = 0

    def take() -> tuple[Any, int]:
        nonlocal position
        if position >= len(args):
            return 0, 32
        position += 1
        return args[position - 1], bits[position - 1]

    def one(match: re.Match[str]) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(int(take()[0]))
        if precision == "*":
            precision = str(int(take()[0]))
        spec = "%" + flags + (width or "") + (f".{precision}" if precision is not None else "")
        value, size = take()
        return _convert(spec, kind, value, size, length or "")

    return _CONVERSION.sub(one, fmt)


_LENGTH_BITS = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64, "j": 64, "z": 64, "t": 64, "L": 64}


def _convert(spec: str, kind: str, value: Any, size: int, length: str) -> str:
    if kind in "fFeEgG":
        return (spec + kind) % float(value)
    if kind in "aA":
        text = float(value).hex()
        return (spec + "s") % (text.upper() if kind == "A" else text)
    if kind == "s":
        return (spec + "s") % str(value)
    number = int(value)
    if kind == "p":
        return (spec + "s") % hex(number & ((1 << 64) - 1))
    if kind == "c":
        return (spec + "s") % chr(number & 0xFF)
    # The wider of what was passed and what the format says, so that no digit is lost.
    width = max(size, _LENGTH_BITS[length]) if size > 32 else _LENGTH_BITS[length]
    number &= (1 << width) - 1
    if kind in "di":
        if number >> (width - 1):
            number -= 1 << width
        return (spec + "d") % number
    number_text: str = (spec + ("d" if kind == "u" else kind)) % number
    return number_text.replace("0o", "0", 1) if kind == "o" else number_text
