"""Rules of the TMA unit: copies of tensors and of contiguous memory, bulk groups, tensor maps."""

from __future__ import annotations

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import bulk_copies, bulk_groups, tensor_maps, tma
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import nvidia_rule
from basedsl_cute.sim.translate.types import PtrType


def _lanes(e: PythonEmitter, values: list[Value]) -> str:
    return f"({''.join(f'{e.lanes(value)}, ' for value in values)})"


_MODES = ("tile", "tile_gather4", "tile_scatter4", "im2col")


def _mode(op: Op) -> str:
    """The mode of a copy. Raises MissingRuleError for im2col along one mode only (`im2col_w`)."""
    mode = op.word("mode", "tile") or "tile"
    if mode not in _MODES:
        raise MissingRuleError(op.site, f"in mode {mode}")
    return mode


def _only_tiles(op: Op) -> None:
    if _mode(op) != "tile":
        raise MissingRuleError(op.site, f"in mode {op.word('mode')}")


@nvidia_rule("nvvm.cp.async.bulk.tensor.shared.cluster.global", sync="warp")
def _load_tile(e: PythonEmitter, op: Op) -> None:
    mode = _mode(op)
    e.globals["tma"] = tma
    to, map_, coordinates, barrier, offsets, mask, _, predicate = op.segments()
    if predicate:
        raise MissingRuleError(op.site, "with a predicate")
    e.line(
        f"tma.tma_load(g, {e.mask}, {e.at()}, {e.lanes(map_[0])}, {e.lanes(to[0])}, "
        f"{e.lanes(barrier[0])}, {e.lanes(mask[0]) if mask else None}, {_lanes(e, coordinates)}, "
        f"{op.word('group', 'cta_1') == 'cta_2'}, {mode!r}, {_lanes(e, offsets)})"
    )


@nvidia_rule("nvvm.cp.async.bulk.tensor.global.shared.cta", sync="warp")
def _store_tile(e: PythonEmitter, op: Op) -> None:
    mode = _mode(op)
    e.globals["tma"] = tma
    map_, source, coordinates, _, predicate = op.segments()
    if predicate:
        raise MissingRuleError(op.site, "with a predicate")
    e.line(
        f"tma.tma_store(g, {e.mask}, {e.at()}, {e.lanes(map_[0])}, {e.lanes(source[0])}, "
        f"{_lanes(e, coordinates)}, mode={mode!r})"
    )


@nvidia_rule("nvvm.cp.async.bulk.shared.cluster.global", sync="warp")
def _bulk_load(e: PythonEmitter, op: Op) -> None:
    e.globals["bulk_copies"] = bulk_copies
    to, source, barrier, size, mask, _ = op.segments()
    if mask:
        raise MissingRuleError(op.site, "for several blocks")
    places = ", ".join(e.lanes(part[0]) for part in (to, source, size, barrier))
    e.line(f"bulk_copies.bulk_load(g, {e.mask}, {e.at()}, {places})")


@nvidia_rule("nvvm.cp.async.bulk.global.shared.cta", sync="warp")
def _bulk_store(e: PythonEmitter, op: Op) -> None:
    e.globals["bulk_copies"] = bulk_copies
    to, source, size, _, mask = op.segments()
    if mask:
        raise MissingRuleError(op.site, "of chosen bytes")
    places = ", ".join(e.lanes(part[0]) for part in (to, source, size))
    e.line(f"bulk_copies.bulk_store(g, {e.mask}, {e.at()}, {places})")


@nvidia_rule("nvvm.cp.async.bulk.tensor.reduce", sync="warp")
def _reduce(e: PythonEmitter, op: Op) -> None:
    _only_tiles(op)
    e.globals["tma"] = tma
    map_, source, coordinates, _ = op.segments()
    e.line(
        f"tma.tma_store(g, {e.mask}, {e.at()}, {e.lanes(map_[0])}, {e.lanes(source[0])}, "
        f"{_lanes(e, coordinates)}, {op.word('redKind')!r})"
    )


@nvidia_rule("nvvm.cp.async.bulk.tensor.prefetch")
def _prefetch(e: PythonEmitter, op: Op) -> None:
    """Only the cache changes, but the tensor map has to be one."""
    mode = _mode(op)
    if mode.endswith("4"):
        raise MissingRuleError(op.site, f"in mode {mode}")
    e.globals["tma"] = tma
    map_, coordinates, offsets, _ = op.segments()
    e.line(
        f"tma.tma_prefetch(g, {e.mask}, {e.at()}, {e.lanes(map_[0])}, {_lanes(e, coordinates)}, "
        f"{mode!r}, {_lanes(e, offsets)})"
    )


@nvidia_rule("cute.tensormap_replace")
def _replace(e: PythonEmitter, op: Op) -> None:
    e.globals["tensor_maps"] = tensor_maps
    place, value = op.operands
    field, shared = op.string("field"), place.type == PtrType(3)
    e.line(
        f"tensor_maps.replace_field(g, {e.mask}, {e.at()}, {shared}, {e.lanes(place)}, {field!r}, "
        f"{op.integer('ordinal')}, {e.lanes(value)})"
    )


@nvidia_rule("cute.tensormap_release", sync="warp")
def _release(e: PythonEmitter, op: Op) -> None:
    e.globals["tensor_maps"] = tensor_maps
    target, source = op.operands
    places = f"{e.ref(target)}, {e.ref(source)}"
    e.line(f"tensor_maps.release_tensor_map(g, {e.mask}, {e.at()}, {e.branch()}, {places})")


@nvidia_rule("nvvm.fence.proxy.acquire")
def _acquire(e: PythonEmitter, op: Op) -> None:
    e.globals["tensor_maps"] = tensor_maps
    e.line(f"tensor_maps.acquire_tensor_map(g, {e.lanes(op.operands[0])}, {e.mask})")


@nvidia_rule("nvvm.cp.async.bulk.commit.group")
def _commit(e: PythonEmitter, op: Op) -> None:
    e.globals["bulk_groups"] = bulk_groups
    e.line(f"bulk_groups.commit_bulk_group(g, {e.mask})")


@nvidia_rule("nvvm.cp.async.bulk.wait_group")
def _wait(e: PythonEmitter, op: Op) -> None:
    e.globals["bulk_groups"] = bulk_groups
    groups = f"{op.integer('group')}, {op.flag('read')}"
    e.line(f"bulk_groups.wait_for_bulk_groups(g, {groups}, {e.mask})")
