"""Collectives over several hosts: these kernels within a host, the groups' backend between hosts.

The ranks are a grid of hosts and of GPUs within each. `inner` is the group of the ranks of one
host, `outer` that of the ranks with one number on all hosts. So every GPU sends an equal part
between hosts, by its own network card where it has one.
"""

from __future__ import annotations

import importlib
from typing import Any

from basedsl_cute.ops.distributed.process_group import group_named, name_of
from basedsl_cute.ops.distributed.torch_operations import all_gather, all_reduce, reduce_scatter


def hierarchical_all_reduce(x: Any, inner: Any, outer: Any) -> Any:
    """Return the sum of `x` over all hosts' ranks: a reduce-scatter within each host, an all-reduce
    of each part between hosts, an all-gather within each host.

    `inner` and `outer` are groups as `all_reduce` takes them. All ranks get the same bits if the
    backend of `outer` gives all ranks the same. The result has the gradient of `all_reduce`.
    """
    ranks = _size(inner)
    flat = x.reshape(-1)
    count = flat.numel()
    missing = -count % ranks
    if missing:
        flat = _torch().nn.functional.pad(flat, (0, missing))
    part = all_reduce(reduce_scatter(flat, inner), outer)
    return all_gather(part, inner)[:count].reshape(x.shape)


def hierarchical_all_gather(x: Any, inner: Any, outer: Any) -> Any:
    """Return `x` of all hosts' ranks along mode 0, host by host: an all-gather of each number
    between hosts, then one within each host. The rest is that of `hierarchical_all_reduce`.
    """
    hosts, ranks = _size(outer), _size(inner)
    every = all_gather(all_gather(x, outer), inner)
    rows, rest = x.shape[0], x.shape[1:]
    turned = every.reshape(ranks, hosts, rows, *rest).transpose(0, 1)
    return turned.reshape(hosts * ranks * rows, *rest)


def _torch() -> Any:
    return importlib.import_module("torch")


def _size(group: Any) -> int:
    return int(_torch().distributed.get_world_size(group_named(name_of(group))))
