"""One evaluator for each op of the vector file: arguments in, result in the file's notation out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from basedsl_cute import algebra as cute
from basedsl_cute.algebra.layout import text

Args = dict[str, Any]
EVALUATORS: dict[str, Callable[[Args], Any]] = {}


def op(*names: str) -> Callable[[Callable[[Args], Any]], Callable[[Args], Any]]:
    def register(f: Callable[[Args], Any]) -> Callable[[Args], Any]:
        for name in names:
            EVALUATORS[name] = f
        return f

    return register


def read(value: Any, values: dict[str, int] | None = None) -> Any:
    """An argument. With ``values``, ``_4`` is static and ``4`` becomes a named dynamic integer."""
    if not isinstance(value, str):
        return value
    source = value.replace("Sw<", "S<")
    if values is None:
        return cute.parse(source) if re.match(r"[\d(_]|S<", source) else value

    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        if match[0].startswith("_"):
            return match[0][1:]
        name = f"v{len(values)}"
        values[name] = int(match[0])
        found.append(name)
        return "?"

    source = re.sub(r"_?\d+", mark, source)
    names = iter(found)
    return cute.parse(source, dynamic_leaf=lambda _: cute.Dyn(next(names)))


def show(x: Any) -> Any:
    """A result in the file's notation."""
    if isinstance(x, dict):
        return {key: show(value) for key, value in x.items()}
    if isinstance(x, list):
        return [show(e) for e in x]
    if isinstance(x, cute.Swizzle | cute.ComposedLayout):
        return str(x).replace("S<", "Sw<")
    if isinstance(x, cute.Layout):
        return str(x)
    return text(x) if isinstance(x, tuple) else x


def marked(x: Any) -> str:
    """A result in the file's notation for dynamic records: static leaves ``_``, others ``?``."""
    shown = re.sub(r"\?\{div=\d+\}", "?", str(x) if isinstance(x, cute.Layout) else text(x))
    return re.sub(r"(?<![\d_@])\d+", "_#", shown)


def points(layout: Any) -> list[int]:
    return [layout(i) for i in range(cute.size(layout))]


def offsets(layout: Any) -> dict[str, Any]:
    values = points(layout)
    if len(values) <= 256:
        return {"offsets": values}
    digest = hashlib.sha256(",".join(str(v) for v in values).encode()).hexdigest()
    return {
        "offsets_len": len(values),
        "offsets_first64": values[:64],
        "offsets_sha256": digest,
    }


def part(result: tuple[Any, Any]) -> dict[str, Any]:
    return {"layout": result[0], "offset": result[1]}


@op("props")
def _(a: Args) -> Any:
    layout = a["layout"]
    return {
        "size": cute.size(layout),
        "cosize": cute.cosize(layout),
        "rank": cute.rank(layout),
        "depth": cute.depth(layout),
        "coshape": cute.coshape(layout),
        "product_each": cute.product_each(layout.shape),
    }


@op("layout_eval")
def _(a: Args) -> Any:
    shape = a["layout"].shape
    count = cute.size(shape)
    count = count if isinstance(count, int) else a["count"](count)
    return [a["layout"](i) for i in range(count)]


@op("layout_coord")
def _(a: Args) -> Any:
    return a["layout"](a["coord"])


@op("slice_and_offset")
def _(a: Args) -> Any:
    return part(cute.slice_and_offset(a["coord"], a["layout"]))


@op("idx2crd", "idx2crd_stride")
def _(a: Args) -> Any:
    return cute.idx2crd(a["idx"], a["shape"], a.get("stride"))


@op("crd2idx", "crd2idx_stride")
def _(a: Args) -> Any:
    return cute.crd2idx(a["coord"], a["shape"], a.get("stride"))


@op("crd2crd")
def _(a: Args) -> Any:
    return cute.crd2crd(a["coord"], a["src_shape"], a["dst_shape"])


for _name in (
    "filter",
    "filter_zeros",
    "coalesce",
    "flatten",
    "right_inverse",
    "left_inverse",
    "nullspace",
    "make_layout_like",
    "make_fragment_like",
    "max_alignment",
):
    _function = getattr(cute, _name)
    EVALUATORS[_name] = lambda a, f=_function: f(a["layout"])

for _name in ("logical", "zipped", "tiled", "flat"):
    _divide, _product = getattr(cute, f"{_name}_divide"), getattr(cute, f"{_name}_product")
    EVALUATORS[f"{_name}_divide"] = lambda a, f=_divide: f(a["layout"], a["tiler"])
    EVALUATORS[f"{_name}_product"] = lambda a, f=_product: f(a["block"], a["tiler"])
    EVALUATORS[f"identity_{_name}_divide"] = lambda a, f=_divide: f(
        cute.make_identity_layout(a["shape"]), a["tiler"]
    )

EVALUATORS["complement_default"] = lambda a: cute.complement(a["layout"])
EVALUATORS["complement"] = lambda a: cute.complement(a["layout"], a["cotarget"])
EVALUATORS["coalesce_profile"] = lambda a: cute.coalesce(a["layout"], a["profile"])
EVALUATORS["filter_profile"] = lambda a: cute.filter(a["layout"], a["profile"])
EVALUATORS["group"] = lambda a: cute.group_modes(a["layout"], a["begin"], a["end"])
EVALUATORS["take"] = lambda a: cute.take(a["layout"], a["begin"], a["end"])
EVALUATORS["select"] = lambda a: cute.select(a["layout"], a["modes"])
EVALUATORS["append"] = lambda a: cute.append(a["layout"], a["x"])
EVALUATORS["prepend"] = lambda a: cute.prepend(a["layout"], a["x"])
EVALUATORS["append_to_rank"] = lambda a: cute.append(a["layout"], up_to_rank=a["n"])
EVALUATORS["prepend_to_rank"] = lambda a: cute.prepend(a["layout"], up_to_rank=a["n"])
EVALUATORS["composition"] = lambda a: cute.composition(a["a"], a["b"])
EVALUATORS["composition_basis"] = EVALUATORS["composition"]
EVALUATORS["composition_tiler"] = lambda a: cute.composition(a["layout"], a["tiler"])
EVALUATORS["blocked_product"] = lambda a: cute.blocked_product(a["block"], a["tiler"])
EVALUATORS["raked_product"] = lambda a: cute.raked_product(a["block"], a["tiler"])
EVALUATORS["make_ordered_layout"] = lambda a: cute.make_ordered_layout(a["shape"], a["order"])
EVALUATORS["make_layout_left"] = lambda a: cute.make_layout_left(a["shape"])
EVALUATORS["make_layout_right"] = lambda a: cute.make_layout_right(a["shape"])
EVALUATORS["make_identity_layout"] = lambda a: cute.make_identity_layout(a["shape"])
EVALUATORS["identity_eval"] = lambda a: points(cute.make_identity_layout(a["shape"]))
EVALUATORS["identity_composition"] = lambda a: cute.composition(
    cute.make_identity_layout(a["shape"]), a["b"]
)
EVALUATORS["tile_to_shape"] = lambda a: cute.tile_to_shape(a["block"], a["shape"], a.get("order"))
EVALUATORS["upcast"] = lambda a: cute.upcast(a["layout"], a["n"])
EVALUATORS["downcast"] = lambda a: cute.downcast(a["layout"], a["n"])
EVALUATORS["recast_layout"] = lambda a: cute.recast_layout(
    a["new_bits"], a["old_bits"], a["layout"]
)
EVALUATORS["max_common_vector"] = lambda a: cute.max_common_vector(a["a"], a["b"])
EVALUATORS["max_common_layout"] = lambda a: cute.max_common_layout(a["a"], a["b"])
EVALUATORS["domain_distribute"] = lambda a: cute.domain_distribute(a["shape"], a["n"])


@op("make_layout_tv")
def _(a: Args) -> Any:
    tiler, layout_tv = cute.make_layout_tv(a["thr"], a["val"])
    layout_mn = cute.raked_product(a["thr"], a["val"])
    return {"layout_mn": layout_mn, "layout_tv": layout_tv, "tiler_mn": tiler}


@op("local_tile", "local_tile_proj")
def _(a: Args) -> Any:
    return part(cute.local_tile(a["layout"], a["tiler"], a["coord"], a.get("proj")))


@op("local_partition", "local_partition_proj")
def _(a: Args) -> Any:
    return part(cute.local_partition(a["layout"], a["thr"], a["idx"], a.get("proj")))


@op("inner_partition")
def _(a: Args) -> Any:
    return part(cute.inner_partition(a["layout"], a["tiler"], a["coord"]))


@op("outer_partition")
def _(a: Args) -> Any:
    return part(cute.outer_partition(a["layout"], a["tiler"], a["coord"]))


def swizzled(a: Args) -> cute.ComposedLayout:
    return cute.make_composed_layout(a["swizzle"], a.get("offset", 0), a["layout"])


EVALUATORS["swizzle_apply"] = lambda a: [a["swizzle"](i) for i in range(a["count"])]
EVALUATORS["swizzle_upcast"] = lambda a: cute.upcast(a["swizzle"], a["n"])
EVALUATORS["swizzle_downcast"] = lambda a: cute.downcast(a["swizzle"], a["n"])
EVALUATORS["swizzle_recast_layout"] = lambda a: {
    "composed": cute.recast_layout(a["new_bits"], a["old_bits"], swizzled(a))
}


@op("swizzle_compose")
def _(a: Args) -> Any:
    layout = swizzled(a)
    return {"size": cute.size(layout), "cosize": cute.cosize(layout), **offsets(layout)}


@op("swizzle_local_tile")
def _(a: Args) -> Any:
    tile, offset = cute.local_tile(swizzled(a), a["tiler"], a["coord"])
    assert offset == 0
    return {"shape": tile.shape, "offsets": points(tile)}


@op("swizzle_slice")
def _(a: Args) -> Any:
    kept, offset = cute.slice_and_offset(a["coord"], swizzled(a))
    assert offset == 0
    return {"shape": kept.shape, "offsets": points(kept)}


def gmma(atom: str, layout: cute.ComposedLayout) -> Any:
    return {
        "swizzle_bytes": cute.gmma_smem_swizzle(atom),
        "layout": layout.outer,
        "swizzle_elems": layout.inner,
        **offsets(layout),
    }


@op("gmma_smem_atom")
def _(a: Args) -> Any:
    return gmma(a["atom"], cute.gmma_smem_atom(a["atom"], a["bits"]))


@op("gmma_tile_to_shape")
def _(a: Args) -> Any:
    atom = cute.gmma_smem_atom(a["atom"], a["bits"])
    return gmma(a["atom"], cute.tile_to_shape(atom, a["shape"], a.get("order")))


@op("mma_atom")
def _(a: Args) -> Any:
    atom = cute.mma_atom(a["atom"])
    return {
        "shape_mnk": atom.shape_mnk,
        "thr_id": atom.thr_id,
        "layout_A_TV": atom.tv_layout_A,
        "layout_B_TV": atom.tv_layout_B,
        "layout_C_TV": atom.tv_layout_C,
    }


@op("copy_atom")
def _(a: Args) -> Any:
    atom = cute.copy_atom(a["atom"], a["dtype_bits"])
    return {
        "thr_id": atom.thr_id,
        "layout_src_TV": atom.layout_src_tv,
        "layout_dst_TV": atom.layout_dst_tv,
        "layout_ref_TV": atom.layout_ref_tv,
    }


def mma_tiling(a: Args, atom: str = "atom") -> cute.MmaTiling:
    return cute.make_mma_tiling(cute.mma_atom(a[atom]), a["atom_layout"], a["permutation"])


@op("tiled_mma")
def _(a: Args) -> Any:
    mma = mma_tiling(a)
    return {
        "tile_shape": mma.tile_shape_mnk,
        "thr_layout_vmnk": mma.thr_layout_vmnk,
        "size": mma.size,
        "layout_A_TV": mma.tv_layout_A_tiled,
        "layout_B_TV": mma.tv_layout_B_tiled,
        "layout_C_TV": mma.tv_layout_C_tiled,
    }


def operand_shapes(mma: cute.MmaTiling, multiple: tuple[int, ...]) -> dict[str, tuple[int, int]]:
    m, n, k = (e * f for e, f in zip(mma.tile_shape_mnk, multiple, strict=True))
    return {"A": (m, k), "B": (n, k), "C": (m, n)}


@op("tiled_mma_thrfrg")
def _(a: Args) -> Any:
    mma = mma_tiling(a)
    shapes = operand_shapes(mma, a["tile_multiple"])
    m, n = shapes["C"]
    result: dict[str, Any] = {"mnk": (m, n, shapes["A"][1])}
    for name, shape in shapes.items():
        result[f"thrfrg_{name}"] = mma.thrfrg(name, cute.make_layout(shape))
    result["thrfrg_C_rowmajor"] = mma.thrfrg("C", cute.make_layout((m, n), (n, 1)))
    for name, shape in shapes.items():
        result[f"partition_shape_{name}"] = mma.partition_shape(name, shape)
    return result


def coordinates(part: tuple[cute.Layout, Any], count: int = 32) -> list[str]:
    layout, offset = part
    start = cute.add_offset((0, 0), offset)
    total = min(cute.size(layout), count)
    return [text(cute.add_offset(start, layout(i))) for i in range(total)]


@op("tiled_mma_partition")
def _(a: Args) -> Any:
    mma = mma_tiling(a)
    i, j = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}[a["operand"]]
    tile = mma.tile_shape_mnk
    shape = (tile[i] * a["tile_multiple"][0], tile[j] * a["tile_multiple"][1])
    tensor = cute.make_identity_layout(shape)
    parts = [mma.partition(a["operand"], tensor, t) for t in a["threads"]]
    return {
        "tensor_shape": shape,
        "partition_shape": parts[0][0].shape,
        "partition_stride": parts[0][0].stride,
        "threads": a["threads"],
        "coords": [coordinates(p) for p in parts],
    }


def copy_tiling(a: Args) -> cute.CopyTiling:
    atom = cute.copy_atom(a["copy_atom"], a["dtype_bits"])
    if a["from"] == "make_tiled_copy":
        return cute.make_copy_tiling_tv(atom, a["thr"], a["val"])
    operand = a["from"].removeprefix("make_tiled_copy_")
    return cute.make_copy_tiling_of_mma(atom, mma_tiling(a, "mma_atom"), operand)


@op("tiled_copy")
def _(a: Args) -> Any:
    copy = copy_tiling(a)
    return {
        "tiler_mn": copy.tiler_mn,
        "layout_tv": copy.layout_tv,
        "layoutS_TV": copy.layout_src_tv_tiled,
        "layoutD_TV": copy.layout_dst_tv_tiled,
        "size": copy.size,
    }


@op("tiled_copy_tidfrg")
def _(a: Args) -> Any:
    copy = copy_tiling(a)
    return {f"tidfrg_{side}": copy.tidfrg(side, a["layout"]) for side in "SD"}


@op("tiled_copy_partition")
def _(a: Args) -> Any:
    copy = copy_tiling(a)
    tensor = cute.make_identity_layout(a["tensor_shape"])
    parts = [copy.partition(a["side"], tensor, t) for t in a["threads"]]
    return {
        "partition_shape": parts[0][0].shape,
        "partition_stride": parts[0][0].stride,
        "threads": a["threads"],
        "coords": [coordinates(p) for p in parts],
    }


@op("tiled_copy_retile")
def _(a: Args) -> Any:
    mma = mma_tiling(a, "mma_atom")
    operand = a["from"].removeprefix("make_tiled_copy_")
    tensor = cute.make_layout(a["tensor_shape"])
    part, _ = mma.partition(operand, tensor, 0)
    if operand == "C":
        fragment = cute.make_layout(part.shape)
    else:
        fragment = cute.make_fragment_like(part)
    return {"fragment": fragment, "retiled": copy_tiling(a).retile(fragment)}


@op("tiled_copy_swizzled_partition")
def _(a: Args) -> Any:
    copy = copy_tiling(a)
    parts = [copy.partition("S", swizzled(a), t) for t in a["threads"]]
    assert all(offset == 0 for _, offset in parts)
    return {"threads": a["threads"], "offsets": [points(layout)[:64] for layout, _ in parts]}
