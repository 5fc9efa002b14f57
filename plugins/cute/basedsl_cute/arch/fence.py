"""Fences: PTX ISA 9.7.13.5, "membar" and "fence", with the proxies of asynchronous units."""

from __future__ import annotations

import enum
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op


class ProxyKind(enum.Enum):
    """Ways to memory besides ordinary accesses (PTX ISA 8.6, "Proxies")."""

    alias = "alias"
    async_ = "async"
    async_global = "async.global"
    async_shared = "async.shared"


class SharedSpace(enum.Enum):
    """Whose shared memory: the block's own, or that of all blocks of the cluster."""

    shared_cta = "cta"
    shared_cluster = "cluster"


_PROXIES = [kind.value for kind in ProxyKind]


@takes_location
def fence_proxy(
    kind: ProxyKind | str, space: SharedSpace | str | None = None, use_intrinsic: Any = None
) -> None:
    """Order ordinary accesses before those of the proxy `kind`: "async.shared" (with `space`
    "cta" or "cluster"), "async.global", "async", "alias". `use_intrinsic` changes nothing.
    """
    name = str(getattr(kind, "value", kind))
    if name not in _PROXIES:
        raise DSLTypeError(f"{kind!r} is no proxy; there are {', '.join(_PROXIES)}")
    attributes = {"kind": f"#nvvm.proxy_kind<{name}>"}
    if name == "async.shared":
        where = str(getattr(space, "value", space or "cta"))
        if where not in ("cta", "cluster"):
            raise DSLTypeError(f"the space of a proxy fence is 'cta' or 'cluster', not {space!r}")
        attributes["space"] = f"#nvvm.shared_space<{where}>"
    emit_op("fence_proxy()", "nvvm.fence.proxy", attributes=attributes)


@takes_location
def fence_view_async_shared() -> None:
    """What this thread wrote to shared memory is seen by later TMA copies and wgmma."""
    fence_proxy("async.shared", space="cta")


@takes_location
def fence_acq_rel_cta() -> None:
    """A memory fence among the threads of the block."""
    _fence("cta")


@takes_location
def fence_acq_rel_cluster() -> None:
    """A memory fence among the threads of the cluster."""
    _fence("cluster")


@takes_location
def fence_acq_rel_gpu() -> None:
    """A memory fence among the threads of the device."""
    _fence("gpu")


@takes_location
def fence_acq_rel_sys() -> None:
    """A memory fence among all threads, the host's included."""
    _fence("sys")


def _fence(scope: str) -> None:
    attributes = {"scope": f"#nvvm.mem_scope<{scope}>"}
    emit_op("a memory fence", "nvvm.memory.barrier", attributes=attributes)
