"""Memory order, scope and L1 eviction priority of copies by plain loads and stores."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError


class MemoryOrder(enum.Enum):
    """The memory order of an access (PTX ISA 8, "Memory Consistency Model").

    Loads and stores of copies take WEAK, RELAXED, ACQUIRE (loads), RELEASE (stores) and VOLATILE;
    the others are orders of atomic operations and fences.
    """

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
    """The set of threads among which an access is ordered: block, cluster, GPU or system."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class CacheEvictionPriority(enum.Enum):
    """The eviction priority of a cache line in L1 after an access (PTX ISA 9.7.9.2)."""

    EVICT_NORMAL = "L1::evict_normal"
    EVICT_UNCHANGED = "L1::evict_unchanged"
    EVICT_FIRST = "L1::evict_first"
    EVICT_LAST = "L1::evict_last"
    NO_ALLOCATE = "L1::no_allocate"


@dataclass(frozen=True)
class PlainAccess:
    """The order and scope of an access, as `arch.load` takes them (None for weak), and its L1
    eviction priority in PTX's spelling.
    """

    order: str | None = None
    scope: str | None = None
    priority: str | None = None


WEAK = PlainAccess()

# The orders of loads and stores; others belong to atomics and fences.
_ORDERS = ("weak", "relaxed", "acquire", "release", "volatile")


def plain_access(order: Any, scope: Any, priority: Any) -> PlainAccess:
    """The access for the arguments of `make_copy_atom`: members of the enums, their names, or None.

    Raises DSLTypeError for orders that loads and stores do not have, and for an order together with
    a priority.
    """
    chosen = _member(MemoryOrder, order, "memory_order")
    within = _member(MemoryScope, scope, "memory_scope")
    kept = _member(CacheEvictionPriority, priority, "l1c_evict_priority")
    if chosen is not None and chosen not in _ORDERS:
        raise DSLTypeError(
            f"memory_order={order}: a load or store is one of {', '.join(_ORDERS)}",
            hint="put a fence beside it (arch.fence_acq_rel_gpu()), or use an atomic operation; "
            "memory that no thread writes can be read with CopyG2ROp(LoadCacheMode.READ_ONLY)",
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
