"""Atoms (one instruction, with who holds what of it) and their tiled forms."""

from basedsl_cute.atoms.copy import (
    CopyAtom,
    CopyOp,
    ThrCopy,
    TiledCopy,
    make_copy_atom,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
)

__all__ = [
    "CopyAtom",
    "CopyOp",
    "ThrCopy",
    "TiledCopy",
    "make_copy_atom",
    "make_cotiled_copy",
    "make_tiled_copy",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_C_atom",
    "make_tiled_copy_D",
    "make_tiled_copy_S",
    "make_tiled_copy_tv",
]
