"""Parsers of the MLIR attributes that rules read: from text to plain Python values."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from basedsl_cute.sim.translate.types import FloatType, IntType, Type, VectorType, dtype_of


def parse_int(text: str) -> int:
    """The value of an integer attribute: `5 : i64`, `true`, `-3 : index`."""
    head = text.split(" : ")[0].strip()
    if head in ("true", "false"):
        return int(head == "true")
    return int(head, 0)


def parse_ints(text: str) -> list[int]:
    """The values of an array attribute: `array<i64: 1, 2>` or `[1, 2]`."""
    body = re.sub(r"^array<i\d+:?|^\[|[>\]]$", "", text)
    return [parse_int(part) for part in body.split(",") if part.strip()]


def parse_word(text: str) -> str:
    """The last word of an enum attribute: x of `#gpu<dim x>`, bfly of `#nvvm.shfl_kind<bfly>`."""
    match = re.search(r"(\w+)>*$", text)
    return match.group(1) if match else text


def parse_bytes(text: str) -> bytes:
    """The bytes of a quoted string with MLIR's escapes (`\\0A`, `\\"`, `\\\\`, `\\n`)."""
    body = text[text.index('"') + 1 : text.rindex('"')]
    if "\\" not in body:
        return body.encode()
    out = bytearray()
    i = 0
    raw = body.encode()
    short = {ord("n"): 10, ord("t"): 9, ord("\\"): 92, ord('"'): 34}
    while i < len(raw):
        if raw[i] != ord("\\"):
            out.append(raw[i])
            i += 1
        elif re.match(rb"[0-9A-Fa-f]{2}", raw[i + 1 : i + 3]):
            out.append(int(raw[i + 1 : i + 3], 16))
            i += 3
        else:
            out.append(short.get(raw[i + 1], raw[i + 1]))
            i += 2
    return bytes(out)


def parse_string(text: str) -> str:
    """The text of a quoted string (UTF-8)."""
    return parse_bytes(text).decode(errors="replace")


def _float_from_bits(bits: int, type_: FloatType) -> Any:
    if type_.name == "tf32":
        return np.float32(struct.unpack("<f", struct.pack("<I", bits << 13))[0])
    return np.frombuffer(bits.to_bytes(type_.size, "little"), dtype_of(type_))[0]


def parse_scalar(text: str, type_: Type) -> Any:
    """The number of `type_` in `text` (decimal, hexadecimal bits, `true`), as a NumPy scalar."""
    text = text.strip()
    dtype = dtype_of(type_)
    if isinstance(type_, FloatType):
        if text.startswith("0x"):
            return _float_from_bits(int(text, 16), type_)
        return dtype.type(float(text))
    value = parse_int(text)
    if isinstance(type_, IntType) and type_.width > 1:
        half = 1 << (type_.width - 1)
        value = (value + half) % (2 * half) - half
    return dtype.type(value)


def parse_constant(text: str, type_: Type) -> Any:
    """The value of a constant op: a NumPy scalar, or for vectors an array of the vector's shape."""
    if not isinstance(type_, VectorType):
        return parse_scalar(text.rsplit(" : ", 1)[0], type_)
    return parse_dense(text, type_.shape, type_.element)


def parse_dense(text: str, shape: tuple[int, ...], element: Type) -> Any:
    """The array of a `dense<...>` attribute: a splat, nested lists, or hexadecimal bytes. Raises
    ValueError.
    """
    match = re.match(r"dense<(.*)>\s*:\s*[^:]*$", text, re.S)
    if match is None:
        raise ValueError(f"not a dense attribute: {text[:80]}")
    body = match.group(1).strip()
    dtype = dtype_of(element)
    if body.startswith('"0x'):
        raw = bytes.fromhex(body[3:-1])
        if dtype == np.bool_:
            bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")
            flat = bits[: int(np.prod(shape))].astype(np.bool_)
        else:
            flat = np.frombuffer(raw, dtype)
        return (np.full(shape, flat[0]) if flat.size == 1 else flat.reshape(shape)).copy()
    numbers = [n for n in re.split(r"[\[\],\s]+", body) if n]
    values = np.array([parse_scalar(n, element) for n in numbers], dtype)
    if values.size == 1:
        return np.full(shape, values[0], dtype)
    return values.reshape(shape)
