"""printf by lanes: of a format with values per lane, or CUDA's vprintf with a packed buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.load_store import load_memory
from basedsl_cute.sim.machine.output import conversions, format_c
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site


def _print(g: Group, text: str, lane: int) -> None:
    """Keep what `lane` prints; the launch writes it out in order."""
    number = int(g.shape.block_number[lane])
    warp = int(g.shape.warp[lane])
    g.launch.output.add_text(g.block.linear + number, g.block.epoch, warp, text)


def _active(g: Group, m: Mask) -> Any:
    return range(g.lanes) if m is None else np.flatnonzero(m).tolist()


def printf(g: Group, fmt: str, args: tuple[Any, ...], bits: list[int], m: Mask) -> None:
    """Print `fmt` with the values of every lane in `m`, in lane order: `args`, `(lanes,)` each, of
    `bits` bits.
    """
    if not args:
        text = format_c(fmt, [], [])
        for lane in _active(g, m):
            _print(g, text, lane)
        return
    columns = [
        arg.tolist() if arg.dtype.kind in "biuf" else arg.astype(float).tolist() for arg in args
    ]
    for lane in _active(g, m):
        _print(g, format_c(fmt, [column[lane] for column in columns], bits), lane)


def _bytes(g: Group, address: int, count: int, lane: int, site: Site) -> Any:
    a = MemoryAccess(np.dtype(np.uint8), (count,), 1, 0, None, site, "i8")
    m = np.zeros(g.lanes, np.bool_)
    m[lane] = True
    return np.ascontiguousarray(load_memory(g, a, np.full(g.lanes, address), m)[:, lane])


def _c_string(g: Group, address: int, lane: int, site: Site) -> str:
    out = bytearray()
    while True:
        byte = int(_bytes(g, address + len(out), 1, lane, site)[0])
        if byte == 0:
            return out.decode(errors="replace")
        out.append(byte)


def vprintf(g: Group, fmt: Any, buffer: Any, site: Site, m: Mask) -> None:
    """Print as CUDA's vprintf does: the arguments lie in `buffer` like the fields of a C struct,
    integers as 4 or 8 bytes, floats as double.
    """
    texts: dict[int, str] = {}
    for lane in _active(g, m):
        address = int(fmt[lane])
        if address not in texts:
            texts[address] = _c_string(g, address, lane, site)
        text = texts[address]
        values, bits, at = [], [], 0
        for conversion in conversions(text):
            is_float = conversion[-1] in "fFeEgGaA"
            wide = is_float or conversion[-1] in "sp" or conversion[0] in "ljzt"
            size = 8 if wide else 4
            at = -(-at // size) * size
            raw = _bytes(g, int(buffer[lane]) + at, size, lane, site)
            number = raw.view(np.float64 if is_float else f"i{size}")[0].item()
            if conversion[-1] == "s":
                number = _c_string(g, number, lane, site)
            values.append(number)
            bits.append(size * 8)
            at += size
        _print(g, format_c(text, values, bits), lane)
