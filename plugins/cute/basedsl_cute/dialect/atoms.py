"""The instruction atoms that `cute.copy` and `cute.gemm` can name, and what each of them allows.

These rows say what is legal in the IR; thread-value layouts of atoms belong to the front end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from basedsl import DSLError, ask_plugins
from basedsl_cute import hookspecs
from basedsl_cute.hardware.requirements import COPIES, MMA_SYNC, Requirement, mma_sync


@dataclass(frozen=True)
class CopyAtomRow:
    """An instruction that copies. Empty `sources`, `targets` or `bits` allow anything;
    `requirement` says which architectures have it, None that all have.
    """

    name: str
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    bits: tuple[int, ...] = ()
    caches: tuple[str, ...] = ()
    requirement: Requirement | None = None

    def refuses(self, source: str, target: str, bits: int, cache: str | None) -> str | None:
        """Return why the atom cannot do this copy, or None if it can."""
        if self.sources and source not in self.sources:
            return f"{self.name} copies from {' or '.join(self.sources)}, not from {source}"
        if self.targets and target not in self.targets:
            return f"{self.name} copies into {' or '.join(self.targets)}, not into {target}"
        if self.bits and bits not in self.bits:
            return f"{self.name} copies {', '.join(map(str, self.bits))} bits, not {bits}"
        if cache is not None and cache not in self.caches:
            known = ", ".join(self.caches) or "no cache mode"
            return f"{self.name} knows {known}, not {cache!r}"
        if self.name == "cp_async" and cache == "cg" and bits != 128:
            return "cp_async with cache 'cg' copies 128 bits (PTX ISA 9.7.9.25.3, cp.async)"
        return None


COPY_ATOMS = {
    atom.name: atom
    for atom in (
        # An ordinary load and store; bits as PTX ISA 9.7.9.8 (ld) has vectors of.
        CopyAtomRow("universal", bits=(8, 16, 32, 64, 128, 256), caches=("ca", "cg", "cs", "nc")),
        # PTX ISA 9.7.9.25.3, cp.async: global to shared, past the registers.
        CopyAtomRow(
            "cp_async", ("gmem",), ("smem",), (32, 64, 128), ("ca", "cg"), COPIES["cp_async"]
        ),
        # PTX ISA 9.7.14.5.15, ldmatrix, and 9.7.14.5.16, stmatrix: each lane gives the address of
        # a row of 128 bits in shared memory.
        *(
            CopyAtomRow(f"{stem}_x{number}{turned}", *spaces, bits=(128,), requirement=COPIES[stem])
            for stem, spaces in (
                ("ldmatrix", (("smem",), ("rmem",))),
                ("stmatrix", (("rmem",), ("smem",))),
            )
            for number in (1, 2, 4)
            for turned in ("", "_trans")
        ),
        # The same section, shape m16n16: 16 rows of 16 bytes each, which it transposes.
        *(
            CopyAtomRow(
                f"ldmatrix_b8_x{n}", ("smem",), ("rmem",), (128,), (), COPIES["ldmatrix_b8"]
            )
            for n in (1, 2)
        ),
        # The same sections: 16 elements of 4 or 6 bits at the beginning of a row, to bytes, and a
        # transposing store of 16x8 bytes.
        *(
            CopyAtomRow(f"{stem}_x{n}", ("smem",), ("rmem",), (128,), (), COPIES[stem])
            for bits in (4, 6)
            for stem, numbers in ((f"ldmatrix_b{bits}", (1, 2, 4)), (f"ldmatrix_b{bits}t", (1, 2)))
            for n in numbers
        ),
        *(
            CopyAtomRow(
                f"stmatrix_b8_x{n}", ("rmem",), ("smem",), (128,), (), COPIES["stmatrix_b8"]
            )
            for n in (1, 2, 4)
        ),
    )
}


@dataclass(frozen=True)
class MmaAtomRow:
    """A matrix instruction. `elements` are its element types in the order d, a, b, c; None if it
    takes any type that is the same for all four. `requirement` says which architectures
    have it, None that all have. `lower(b, op)` lowers a `cute.gemm` of it, by the builder of
    `lowering.kernel.rewriter`; None is for cute's own, mma.sync.
    """

    name: str
    elements: tuple[str, str, str, str] | None = None
    requirement: Requirement | None = None
    lower: Callable[[Any, Any], None] | None = None

    def refuses(self, d: str, a: str, b: str, c: str) -> str | None:
        """Return why the atom does not take these element types, or None if it does."""
        if self.elements is None:
            same = d == a == b == c
            return None if same else f"{self.name} takes one element type, not {d}, {a}, {b}, {c}"
        if (d, a, b, c) != self.elements:
            wanted = ", ".join(self.elements)
            return f"{self.name} takes elements {wanted} (d, a, b, c), not {d}, {a}, {b}, {c}"
        return None


# How the IR names element types where PTX has names of its own.
_ELEMENTS = {"s8": "i8", "u8": "i8", "s32": "i32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


def _warp_mma(shape: str, d: str, a: str, b: str) -> MmaAtomRow:
    """The atom of an mma.sync (PTX ISA 9.7.14.5), by PTX's names of its element types."""
    elements = tuple(_ELEMENTS.get(x, x) for x in (d, a, b, d))
    name = f"mma_{shape}_{d}{a}{b}{d}"
    return MmaAtomRow(name, elements, mma_sync(shape, a, b))  # type: ignore[arg-type]


# By the type of A in `MMA_SYNC`: the types of D and C that go with it, and those of B.
_F8, _I8 = ("e4m3", "e5m2"), ("s8", "u8")
_ACCUMULATORS = {
    "f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",),
    **dict.fromkeys(_F8, ("f32",)), **dict.fromkeys(_I8, ("s32",)),
}  # fmt: skip
_FACTORS = {**dict.fromkeys(_F8, _F8), **dict.fromkeys(_I8, _I8)}

MMA_ATOMS = {
    atom.name: atom
    for atom in (
        MmaAtomRow("universal_fma"),
        *(
            _warp_mma(shape, d, a, b)
            for a, shape in MMA_SYNC
            for d in _ACCUMULATORS[a]
            for b in _FACTORS.get(a, (a,))
        ),
    )
}


def mma_atom(name: str) -> MmaAtomRow | None:
    """Return the row of a matrix instruction, cute's or another plugin's; None without one."""
    found = MMA_ATOMS.get(name)
    if found is None:
        for answer in ask_plugins(hookspecs.basedsl_cute_mma_atoms):
            for row in answer:
                if not isinstance(row, MmaAtomRow) or row.lower is None:
                    raise DSLError(f"a plugin's MMA atom is {row!r}, not an MmaAtomRow with lower=")
                MMA_ATOMS.setdefault(row.name, row)
        found = MMA_ATOMS.get(name)
    return found
