"""Fences: PTX ISA 9.7.13.5, "membar" and "fence", with the proxies of asynchronous units."""

from __future__ import annotations

from basedsl.errors import DSLTypeError
from basedsl_cute.arch.emit import emit_op

_PROXIES = {
    "alias": "alias",
    "async": "async",
    "async.global": "async.global",
    "async.shared": "async.shared",
}


def fence_proxy(kind: str, space: str | None = None) -> None:
    """Order ordinary accesses before those of the proxy `kind`: "async.shared" (with `space`
    "cta" or "cluster"), "async.global", "async", "alias".
    """
    name = str(getattr(kind, "value", kind))
    if name not in _PROXIES:
        raise DSLTypeError(f"{kind!r} is no proxy; there are {', '.join(_PROXIES)}")
    attributes = {"kind": f"#nvvm.proxy_kind<{_PROXIES[name]}>"}
    if name == "async.shared":
        where = str(getattr(space, "value", space or "cta"))
        if where not in ("cta", "cluster"):
            raise DSLTypeError(f"the space of a proxy fence is 'cta' or 'cluster', not {space!r}")
        attributes["space"] = f"#nvvm.shared_space<{where}>"
    emit_op("fence_proxy()", "nvvm.fence.proxy", attributes=attributes)


def fence_view_async_shared() -> None:
    """What this thread wrote to shared memory is seen by later TMA copies and wgmma."""
    fence_proxy("async.shared", space="cta")


def fence_acq_rel_cta() -> None:
    """A memory fence among the threads of the block."""
    _fence("cta")


def fence_acq_rel_cluster() -> None:
    """A memory fence among the threads of the cluster."""
    _fence("cluster")


def fence_acq_rel_gpu() -> None:
    """A memory fence among the threads of the device."""
    _fence("gpu")


def fence_acq_rel_sys() -> None:
    """A memory fence among all threads, the host's included."""
    _fence("sys")


def _fence(scope: str) -> None:
    attributes = {"scope": f"#nvvm.mem_scope<{scope}>"}
    emit_op("a memory fence", "nvvm.memory.barrier", attributes=attributes)
