"""`AddressSpace`: the memories by name."""

from __future__ import annotations

import enum


class AddressSpace(enum.StrEnum):
    """The address space of a pointer or tensor; a member equals its name: `x.memspace ==
    "smem"`.
    """

    generic = "generic"
    gmem = "gmem"
    smem = "smem"
    rmem = "rmem"
    tmem = "tmem"
    dsmem = "dsmem"
