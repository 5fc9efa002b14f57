"""`ops.blackwell.grouped_gemm` against float64: groups, pairs, clusters, types and majors."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl.testing import slow_but
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops.blackwell.grouped_gemm import (
    MAPS,
    BlackwellGemmKinds,
    Config,
    grouped_gemm,
    tables,
)
from basedsl_cute.sim import reachable
from basedsl_cute.utils.tensormap_manager import TensorMapUpdateMode
from tests.cute.hopper.test_grouped import COL, GROUPS, POISON, ROW, TYPES, aligned, array, operand

SMALL = {"stages": 2, "acc_stages": 2, "dynamic": False}
ONE = Config((128, 64), False, (1, 1), **SMALL)
PAIR = Config((256, 64), True, (2, 1), **SMALL)
CLUSTER = Config((256, 32), True, (4, 2), **SMALL)
RAGGED = [(40, 200, 72), (290, 8, 8), (64, 72, 136), (0, 8, 8), (72, 64, 0), (1, 64, 64)]


def kinds_of(*types, majors=(ROW, ROW, ROW)):
    acc = cute.Int32 if types[0] is cute.Int8 else cute.Float32
    return BlackwellGemmKinds(*types, *majors, acc)


F16 = kinds_of(cute.Float16, cute.Float16, cute.Float16)


def compare(groups, kinds=F16, cfg=ONE, blocks=3, gap=0, offset=0, **options):
    """Checks what lies in C, and that nothing beside it is written."""
    rng = np.random.default_rng(3)
    triples, wholes = [], []
    for m, n, k in groups:
        a = operand(rng, m, k, kinds.major_a, kinds.a)
        b = operand(rng, n, k, kinds.major_b, kinds.b)
        whole, c = array(m, n, kinds.major_c, TYPES[kinds.c], gap, offset)
        triples.append((a, b, c))
        wholes.append((whole, whole.copy()))
    maps = aligned((blocks, MAPS, 16), np.int64)
    with reachable(*(x for triple in triples for x in triple if x.size)):
        grouped_gemm(*tables(triples), maps, kinds, cfg, **options)
    for (a, b, c), (whole, before) in zip(triples, wholes, strict=True):
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_array_equal(
            c.astype(np.float64), exact.astype(c.dtype).astype(np.float64)
        )
        c[...] = POISON[c.dtype.kind == "i"]
        np.testing.assert_array_equal(whole.view(np.uint8), before.view(np.uint8))


QUICK = "one tile of several"


@pytest.mark.parametrize("which", slow_but(GROUPS, QUICK))
def test_groups(sim, which):
    compare(GROUPS[which])


@pytest.mark.slow
@pytest.mark.parametrize("cfg", [ONE, PAIR, CLUSTER], ids=str)
def test_each_configuration(sim, cfg):
    compare(RAGGED, cfg=cfg, blocks=9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [
        kinds_of(cute.Float16, cute.Float16, cute.Float16, majors=(COL, COL, COL)),
        kinds_of(cute.Float16, cute.Float16, cute.Float32, majors=(ROW, COL, ROW)),
        kinds_of(cute.Float32, cute.Float32, cute.Float32),  # as TFloat32
        kinds_of(cute.Float8E4M3FN, cute.Float8E5M2, cute.BFloat16),
        kinds_of(cute.Int8, cute.Int8, cute.Int32),
    ],
    ids=lambda kinds: f"{kinds.a.__name__} {kinds.major_a.name}",
)
def test_types_and_majors(sim, kinds):
    compare([(72, 64, 80), (136, 80, 208), (8, 8, 16)], kinds, PAIR, 4)


@pytest.mark.slow
def test_rows_that_tma_cannot_write_and_maps_changed_in_place(sim):
    compare(RAGGED, gap=1, offset=1, update=TensorMapUpdateMode.GMEM)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_groups(sim, seed):
    rng = np.random.default_rng(seed)
    pair = bool(rng.integers(2))
    cfg = Config(
        (256 if pair else 128, 16 * int(rng.integers(1, 9))),
        pair,
        (2 * int(rng.integers(1, 3)) if pair else int(rng.integers(1, 3)), int(rng.integers(1, 3))),
        int(rng.integers(2, 5)),
        int(rng.integers(1, 3)),
        int(rng.integers(1, 4)),
        dynamic=False,
    )
    groups = [
        (int(rng.integers(0, 300)), int(rng.integers(0, 150)), int(rng.integers(0, 160)))
        for _ in range(rng.integers(1, 6))
    ]
    compare(groups, cfg=cfg, blocks=int(rng.integers(8, 17)), gap=int(rng.integers(0, 2)))


def test_a_dynamic_schedule_is_refused(sim):
    with pytest.raises(DSLTypeError, match="groups are dealt by a static schedule"):
        compare([(8, 8, 8)], cfg=Config((128, 64), False, (1, 1)))


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("tile", [(256, 256), (256, 128), (128, 128)])
def test_ptxas_uses_no_local_memory(tile, arch):
    pair = tile[0] == 256
    cfg = Config(tile, pair, (2, 1) if pair else (1, 1), dynamic=False)
    x = aligned((64, 64), np.float16)
    given = (*tables([(x, x, x)]), aligned((4, MAPS, 16), np.int64))
    compiled = cute.compile(grouped_gemm, *given, F16, cfg, options=f"--arch {arch}")
    (kernel,) = compiled.resources.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.local) == (0, 0, 0)
