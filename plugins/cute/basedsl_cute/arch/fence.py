"""Memory fences: PTX ISA 9.7.13.5, "membar" and "fence", with the proxies of asynchronous units."""

from __future__ import annotations

import enum
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op


class ProxyKind(enum.Enum):
    """Proxies: methods of access to memory besides ordinary loads and stores (PTX ISA 8.6,
    "Proxies").
    """

    alias = "alias"
    async_ = "async"
    async_global = "async.global"
    async_shared = "async.shared"


class SharedSpace(enum.Enum):
    """The shared memory that a proxy fence is about: the block's own, or that of the whole
    cluster.
    """

    shared_cta = "cta"
    shared_cluster = "cluster"


_PROXIES = [kind.value for kind in ProxyKind]


@takes_location
def fence_proxy(
    kind: ProxyKind | str, space: SharedSpace | str | None = None, use_intrinsic: Any = None
) -> None:
    """Order this thread's ordinary accesses before those of the proxy `kind` (PTX `fence.proxy`,
    sm_90).

    `kind` is a `ProxyKind` or its value: "async.shared" (with `space` "cta" or "cluster"),
    "async.global", "async" or "alias". `use_intrinsic` is accepted and changes nothing. Raises
    DSLTypeError for another kind or space.
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
    """Make this thread's writes to shared memory visible to later TMA copies and wgmma (sm_90).

    It is `fence_proxy("async.shared", space="cta")`; a barrier tells the thread that issues these.
    """
    fence_proxy("async.shared", space="cta")


@takes_location
def fence_acq_rel_cta() -> None:
    """Order this thread's memory accesses for the threads of the block (PTX
    `fence.acq_rel.cta`).
    """
    _fence("cta")


@takes_location
def fence_acq_rel_cluster() -> None:
    """Order this thread's memory accesses for the threads of the cluster (PTX
    `fence.acq_rel.cluster`).
    """
    _fence("cluster")


@takes_location
def fence_acq_rel_gpu() -> None:
    """Order this thread's memory accesses for the threads of the device (PTX
    `fence.acq_rel.gpu`).
    """
    _fence("gpu")


@takes_location
def fence_acq_rel_sys() -> None:
    """Order this thread's memory accesses for all threads, the host's too (PTX
    `fence.acq_rel.sys`).
    """
    _fence("sys")


def _fence(scope: str) -> None:
    attributes = {"scope": f"#nvvm.mem_scope<{scope}>"}
    emit_op("a memory fence", "nvvm.memory.barrier", attributes=attributes)
