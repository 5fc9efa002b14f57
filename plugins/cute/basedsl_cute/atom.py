"""`cute.atom`: a second import path of the classes of atoms, and of their operations."""

from basedsl_cute.atoms import CopyAtom, MmaAtom, ThrCopy, ThrMma, TiledCopy, TiledMma
from basedsl_cute.atoms.copy import CopyOp
from basedsl_cute.atoms.mma import MmaOp

__all__ = [
    "CopyAtom",
    "CopyOp",
    "MmaAtom",
    "MmaOp",
    "ThrCopy",
    "ThrMma",
    "TiledCopy",
    "TiledMma",
]
