"""`cute.core`: a second import path of some names of `cute`."""

from basedsl_cute.algebra import Layout, make_swizzle, slice_
from basedsl_cute.atoms import CopyAtom, MmaAtom, ThrCopy, ThrMma, TiledCopy, TiledMma
from basedsl_cute.hardware.address_space import AddressSpace
from basedsl_cute.tensors.make_tensor import make_ptr, make_tensor
from basedsl_cute.tensors.tensor import Tensor

__all__ = [
    "AddressSpace",
    "CopyAtom",
    "Layout",
    "MmaAtom",
    "Tensor",
    "ThrCopy",
    "ThrMma",
    "TiledCopy",
    "TiledMma",
    "make_ptr",
    "make_swizzle",
    "make_tensor",
    "slice_",
]
