"""`AddressSpace`: the memories by name."""

from __future__ import annotations

import enum


class AddressSpace(enum.StrEnum):
    """Where data lives. A member equals its name: `t.memspace == "smem"` holds as well."""

    generic = "generic"
    gmem = "gmem"
    smem = "smem"
    rmem = "rmem"
    tmem = "tmem"
    dsmem = "dsmem"
