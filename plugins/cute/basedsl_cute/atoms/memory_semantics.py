"""What copies by plain loads and stores may ask of memory: an order, and how long the L1 cache is
to keep what they touch.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLTypeError


class MemoryOrder(enum.Enum):
    """How an access is ordered with others (PTX ISA 8, "Memory Consistency Model")."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    SC = "sc"
    MMIO = "mmio"
    CONSTANT = "constant"
    VOLATILE = "volatile"


class MemoryScope(enum.Enum):
    """Among which threads an access is ordered."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class CacheEvictionPriority(enum.Enum):
    """How long what an access brings into the L1 cache is worth keeping; values are PTX's (PTX ISA
    9.7.9.2).
    """

    EVICT_NORMAL = "L1::evict_normal"
    EVICT_UNCHANGED = "L1::evict_unchanged"
    EVICT_FIRST = "L1::evict_first"
    EVICT_LAST = "L1::evict_last"
    NO_ALLOCATE = "L1::no_allocate"


@dataclass(frozen=True)
class PlainAccess:
    """`order` and `scope` as `arch.load` and `arch.store` have them, None for weak; `priority` is
    PTX's name of an eviction priority.
    """

    order: str | None = None
    scope: str | None = None
    priority: str | None = None


WEAK = PlainAccess()

# Orders that single loads and stores have; others are those of atomics and fences.
_ORDERS = ("weak", "relaxed", "acquire", "release", "volatile")


def plain_access(order: Any, scope: Any, priority: Any) -> PlainAccess:
    """From what `make_copy_atom` is given: members of the enums, their names, or None."""
    chosen = _member(MemoryOrder, order, "memory_order")
    within = _member(MemoryScope, scope, "memory_scope")
    kept = _member(CacheEvictionPriority, priority, "l1c_evict_priority")
    if chosen is not None and chosen not in _ORDERS:
        raise DSLTypeError(
            f"memory_order={order}: a load or store is one of {', '.join(_ORDERS)}",
            hint="put a fence beside it (arch.fence_acq_rel_gpu()), or use an atomic operation; "
            "what nobody writes is read with CopyG2ROp(LoadCacheMode.READ_ONLY)",
        )
    chosen = None if chosen == "weak" else chosen
    if chosen is not None and kept is not None:
        raise DSLTypeError("an ordered copy has no l1c_evict_priority")
    return PlainAccess(chosen, None if chosen in (None, "volatile") else within, kept)


def _member(kind: type[enum.Enum], given: Any, name: str) -> str | None:
    if given is None:
        return None
    word = str(getattr(given, "name", given)).upper()
    if word == "NONE":
        return None
    if word not in kind.__members__:
        known = ", ".join(kind.__members__)
        raise DSLTypeError(f"{name} is one of nvgpu.{kind.__name__} ({known}), not {given!r}")
    return str(kind[word].value)
