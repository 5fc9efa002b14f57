"""Inline PTX as a program of the simulator: the parser of its text.

The text is that of LLVM's inline assembly: `$0`, `$1`, ... are first the outputs, then the inputs;
`$$` is a dollar. It declares registers in braces and may guard instructions with predicates. What
waits or jumps is not parsed: the error names the instruction.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.sim.machine import ptx_program as ptx
from basedsl_cute.sim.machine.access import (
    BLOCK_SCOPE,
    GPU_SCOPE,
    SYSTEM_SCOPE,
    MemoryAccess,
)
from basedsl_cute.sim.machine.ptx_arithmetic import DTYPES, PtxArithmetic, arithmetic_of
from basedsl_cute.sim.machine.ptx_bulk import bulk_effect
from basedsl_cute.sim.machine.ptx_multicast import multicast_effect
from basedsl_cute.sim.site import Site

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s+(\.v[24]\s+)?\.(\w+)\s+(.*)", re.DOTALL)
_GUARD = re.compile(r"@(!?)\s*([%$\w.]+)\s+(.*)", re.DOTALL)
_NAME = re.compile(r"[%$A-Za-z_][%$\w.]*")
_SPACES = {"global": 1, "shared": 3, "shared::cta": 3, "shared::cluster": 7}
_BITS = {"r": 32, "f": 32, "h": 16, "l": 64, "d": 64, "b": 1}


class UnknownPtxError(Exception):
    """An instruction, or a form of one, that the parser does not know."""


def parse_ptx(
    text: str, constraints: str, outputs: Sequence[Any], inputs: int, site: Site
) -> ptx.PtxProgram:
    """The program of inline assembly with these constraints. `outputs` are the NumPy types of its
    results, `inputs` the number of its inputs. Raises UnknownPtxError, which names what is unknown.
    """
    letters = [c for c in constraints.split(",") if c and not c.startswith("~")]
    given = letters[len(outputs) :]
    if len(given) != inputs or any(not c.startswith("=") for c in letters[: len(outputs)]):
        raise UnknownPtxError(f"the constraints {constraints!r}")
    arguments, tied = [], []
    for number, letter in enumerate(given, start=len(outputs)):
        if letter.isdigit():
            tied.append((f"${letter}", f"${number}"))
            letter = letters[int(letter)].lstrip("=&")
        if letter not in _BITS:
            raise UnknownPtxError(f"the constraint {letter!r}")
        arguments.append((f"${number}", _BITS[letter]))
    return ptx.PtxProgram(
        tuple(_instructions(text, site)),
        tuple(arguments),
        tuple((f"${i}", dtype) for i, dtype in enumerate(outputs)),
        tuple(tied),
        site,
    )


def _instructions(text: str, site: Site) -> list[ptx.PtxInstruction]:
    text = re.sub(r"\$\{(\d+)(:\w+)?\}", r"$\1", _COMMENT.sub(" ", text).replace("$$", "%%"))
    vectors: dict[str, int] = {}
    found = []
    for piece in text.split(";"):
        statement = piece.strip().lstrip("{} \t\n")  # braces before an instruction are scopes
        if not statement:
            continue
        declared = _REGISTERS.fullmatch(statement)
        if declared is not None:
            if declared[1]:
                width = int(declared[1].strip()[2:])
                vectors |= {name.strip(): width for name in declared[3].split(",")}
            continue
        found.append(_instruction(statement, vectors, site))
    return found


def _instruction(statement: str, vectors: dict[str, int], site: Site) -> ptx.PtxInstruction:
    guard = None
    match = _GUARD.fullmatch(statement)
    if match is not None:
        guard = ptx.Register(match[2], bool(match[1]))
        statement = match[3].strip()
    opcode, *more = re.split(r"\s+", statement, maxsplit=1)
    rest = more[0] if more else ""
    if not re.fullmatch(r"[a-z][\w.:]*", opcode):
        raise UnknownPtxError(repr(statement.split()[0]))
    operands = tuple(_operand(part, vectors) for part in _split(rest))
    arithmetic = arithmetic_of(opcode)
    effect = None if arithmetic is not None else _effect(opcode, site)
    if not _fits(arithmetic, effect, len(operands)):
        raise UnknownPtxError(f"the instruction {opcode}")
    return ptx.PtxInstruction(opcode, effect, operands, guard)


def _fits(arithmetic: PtxArithmetic | None, effect: ptx.PtxEffect | None, operands: int) -> bool:
    if arithmetic is not None:
        return operands == 1 + len(arithmetic.sources)
    if effect is None:
        return False
    counts = _OPERANDS.get(effect.run)
    return counts is None or operands in counts


def _split(text: str) -> list[str]:
    """The operands of an instruction: commas in braces and brackets do not separate."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "{[") - (char in "}]")
        if char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _operand(text: str, vectors: dict[str, int]) -> Any:
    if text.startswith("{"):
        return ptx.Vector(tuple(_operand(part, vectors) for part in _split(text.strip("{}"))))
    if text.startswith("["):
        base, _, offset = text.strip("[] ").partition("+")
        return ptx.PtxAddress(_operand(base.strip(), vectors), int(offset.strip() or "0", 0))
    if "|" in text:
        first, second = (_operand(part.strip(), vectors) for part in text.split("|"))
        return (first, second)
    if text in vectors:
        return ptx.Vector(tuple(ptx.Register(f"{text}.{c}") for c in "xyzw"[: vectors[text]]))
    special = text.lstrip("%")
    if text.startswith("%") and special in ptx.SPECIAL_REGISTERS:
        return ptx.Special(special)
    negated = text.startswith("!")
    if _NAME.fullmatch(text.lstrip("!")):
        return ptx.Register(text.lstrip("!"), negated)
    return _number(text)


def _number(text: str) -> int | float:
    bits = re.fullmatch(r"0([fFdD])([0-9a-fA-F]+)", text)
    try:
        if bits is not None and len(bits[2]) in (8, 16):
            raw = bytes.fromhex(bits[2])
            return float(struct.unpack(">f" if len(raw) == 4 else ">d", raw)[0])
        return float(text) if "." in text else int(text.rstrip("uU"), 0)
    except ValueError:
        raise UnknownPtxError(f"the operand {text!r}") from None


# Instructions with effects -----------------------------------------------------------------------

_OPERANDS: dict[Any, tuple[int, ...]] = {
    ptx.vote: (3,), ptx.elect: (2,), ptx.shuffle: (5,), ptx.reduce: (3,), ptx.load: (2,),
    ptx.store: (2,), ptx.update: (2, 3), ptx.map_address: (3,), ptx.store_async: (3,),
    ptx.active_mask: (1,), ptx.sync_warp: (1,), ptx.update_halves: (2, 3),
}  # fmt: skip
_SILENT = re.compile(
    r"(fence|membar)(\..*)?|prefetch(u)?\..*|nanosleep\.u32|griddepcontrol\.launch_dependents|"
    r"discard\..*|applypriority\..*"
)
_ATOMIC = {
    "exch": 0, "add": 1, "and": 3, "or": 5, "xor": 6, "max": 7, "min": 8, "inc": 15, "dec": 16,
}  # fmt: skip
_HALVES = {name + pair: dtype for pair in ("", "x2") for name, dtype in
           (("f16", np.float16), ("bf16", ml_dtypes.bfloat16))}  # fmt: skip
_REDUX = {"add": "add", "and": "and", "or": "or", "xor": "xor", "min": "min", "max": "max"}
_ORDERS = {"weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "cta", "cluster",
           "gpu", "sys", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::no_allocate",
           "L1::evict_first", "L1::evict_last", "L2::64B", "L2::128B", "L2::256B"}  # fmt: skip


def _effect(opcode: str, site: Site) -> ptx.PtxEffect | None:
    base, *rest = opcode.split(".")
    if _SILENT.fullmatch(opcode):
        return ptx.PtxEffect(ptx.nothing)
    if base == "vote" and rest[:1] == ["sync"] and len(rest) == 3:
        return ptx.PtxEffect(ptx.vote, detail=rest[1])
    if opcode == "bar.warp.sync":
        return ptx.PtxEffect(ptx.sync_warp)
    if opcode == "activemask.b32":
        return ptx.PtxEffect(ptx.active_mask)
    if opcode == "elect.sync":
        return ptx.PtxEffect(ptx.elect)
    if base == "shfl" and rest[:1] == ["sync"] and rest[2:] == ["b32"]:
        return ptx.PtxEffect(ptx.shuffle, detail=rest[1])
    if base == "redux" and rest[:1] == ["sync"] and len(rest) == 3 and rest[1] in _REDUX:
        unsigned = rest[2] == "u32" and rest[1] in ("min", "max")
        kind = "s32" if rest[2] == "u32" else rest[2]
        return ptx.PtxEffect(ptx.reduce, detail=("u" * unsigned + _REDUX[rest[1]], kind))
    if base == "mapa" and rest[-1:] in (["u32"], ["u64"]) and "shared::cluster" in rest:
        return ptx.PtxEffect(ptx.map_address, detail=rest[-1])
    if opcode.startswith("st.async."):
        return _store_async(rest[1:])
    if base in ("ld", "st"):
        return _access(base, rest, site)
    if base == "multimem":
        return multicast_effect(rest, site, _memory)
    if base in ("atom", "red"):
        return _update(rest, site)
    if base == "cp":
        return bulk_effect(opcode)
    return None


def _store_async(rest: list[str]) -> ptx.PtxEffect | None:
    *modifiers, kind = rest
    known = {"shared::cluster", "mbarrier::complete_tx::bytes", "weak", "v2", "v4"}
    if kind not in DTYPES or not set(modifiers) <= known:
        return None
    count = next((int(m[1]) for m in modifiers if m in ("v2", "v4")), 1)
    return ptx.PtxEffect(ptx.store_async, detail=(kind, count))


def _access(base: str, rest: list[str], site: Site) -> ptx.PtxEffect | None:
    *modifiers, kind = rest
    space = [m for m in modifiers if m in _SPACES]
    width = [m for m in modifiers if m in ("v2", "v4")]
    others = set(modifiers) - set(space) - set(width)
    if kind not in DTYPES or kind == "pred" or not others <= _ORDERS or len(space) > 1:
        return None
    shape = (int(width[0][1]),) if width else ()
    verb = "read" if base == "ld" else "write"
    access = _memory(kind, shape, _SPACES[space[0]] if space else 0, site, verb, others)
    return ptx.PtxEffect(ptx.load if base == "ld" else ptx.store, access, kind)


def _update(rest: list[str], site: Site) -> ptx.PtxEffect | None:
    if rest[-3:-1] == ["add", "noftz"] and rest[-1] in _HALVES:
        return _update_halves(rest[:-3], rest[-1], site)
    *modifiers, operation, kind = rest
    space = [m for m in modifiers if m in _SPACES]
    if operation not in _ATOMIC or kind not in DTYPES or not set(modifiers) - set(space) <= _ORDERS:
        return None
    number = _ATOMIC[operation]
    if kind[0] == "f":
        number = {1: 11}.get(number, -1)
    if kind[0] == "u":
        number = {7: 9, 8: 10}.get(number, number)
        kind = f"s{kind[1:]}"
    if number < 0:
        return None
    order = {"relaxed"} | set(modifiers)  # the default
    access = _memory(kind, (), _SPACES[space[0]] if space else 0, site, "atomic update", order)
    return ptx.PtxEffect(ptx.update, access, (number, kind))


def _update_halves(modifiers: list[str], kind: str, site: Site) -> ptx.PtxEffect | None:
    space = [m for m in modifiers if m in _SPACES]
    if not set(modifiers) - set(space) <= _ORDERS:
        return None
    shape = (2,) if kind.endswith("x2") else ()
    where = _SPACES[space[0]] if space else 0
    order = {"relaxed"} | set(modifiers)
    access = _memory("b16", shape, where, site, "atomic update", order)
    dtype = np.dtype(_HALVES[kind])
    access = dataclasses.replace(access, dtype=dtype, element=kind.removesuffix("x2"))
    return ptx.PtxEffect(ptx.update_halves, access, (_ATOMIC["add"], dtype))


def _memory(
    kind: str, shape: tuple[int, ...], space: int, site: Site, verb: str, modifiers: set[str]
) -> MemoryAccess:
    dtype = DTYPES[kind]
    count = shape[0] if shape else 1
    scope = BLOCK_SCOPE if "cta" in modifiers else GPU_SCOPE
    if modifiers & {"sys", "volatile", "mmio"}:
        scope = SYSTEM_SCOPE
    return MemoryAccess(
        dtype=dtype,
        shape=shape,
        align=dtype.itemsize * count,
        space=space,
        root=None,
        site=site,
        element=kind,
        verb=verb,
        strong=bool(modifiers & {"relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"}),
        acquires=bool(modifiers & {"acquire", "acq_rel"}),
        releases=bool(modifiers & {"release", "acq_rel"}),
        scope=scope,
    )
