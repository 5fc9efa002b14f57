"""Random products: type, orders of modes, extents, tile, warps, stages; outputs poisoned before.

Each seed is a configuration with nine problems: on a GPU 24 seeds are 216 of them.
"""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute.ops import matmul
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import sgemm

sys.path.insert(0, str(Path(__file__).parent))

from gemm_problems import close, operands

DTYPES = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
    "tf32": np.float32, "int8": np.int8, "uint8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
ON_GPU = [
    pytest.param("gpu", seed, marks=[pytest.mark.gpu, *([pytest.mark.slow] if seed > 3 else [])])
    for seed in range(24)
]


def configuration(rng, name, small):
    """A tile that warps and copies divide: drawn until one is found."""
    if name == "float32":
        tile, warps = [((32, 64), (2, 1)), ((64, 64), (1, 2)), ((128, 128), (4, 2))][
            rng.integers(2 if small else 3)
        ]
        return sgemm.Config((*tile, 8), warps, int(rng.integers(2, 5)))
    width = np.dtype(DTYPES[name]).itemsize * 8
    op = ampere_gemm.instruction(
        {"float16": cute.Float16, "bfloat16": cute.BFloat16, "tf32": cute.TFloat32,
         "int8": cute.Int8, "uint8": cute.Uint8, "e4m3": cute.Float8E4M3FN,
         "e5m2": cute.Float8E5M2}[name]
    )  # fmt: skip
    while True:
        extents = (32, 64) if small else (32, 64, 128, 256)
        cfg = ampere_gemm.Config(
            tile=(*(int(x) for x in rng.choice(extents, 2)), int(rng.choice([512, 1024])) // width),
            warps=tuple(int(x) for x in rng.choice([1, 2, 4], 2)),
            stages=int(rng.integers(2, 6)),
            swizzle=int(rng.choice([1, 2, 8])),
            along_m=bool(rng.integers(2)),
        )
        sums = cfg.tile[0] * cfg.tile[1] // cfg.threads  # registers of a thread
        if (
            cfg.threads <= (64 if small else 256)
            and sums <= (32 if small else 128)
            and cfg.smem_bytes(width) < 96e3
        ):
            try:
                for vector in (128 // width, 1):
                    ampere_gemm.check_config(cfg, op, (vector, vector, vector))
            except DSLError:
                continue
            return cfg


@pytest.mark.filterwarnings(
    "ignore::basedsl_cute.dsl.steps.SpillWarning"
)  # any configuration may be drawn
@pytest.mark.parametrize("where, seed", [("sim", 0), ("sim", 1), ("sim", 2), *ON_GPU])
def test_against_numpy(monkeypatch, where, seed):
    rng = np.random.default_rng([seed, len(where)])
    names = list(DTYPES)
    if where == "sim":
        monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    else:
        monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
        from basedsl_cute.device import driver

        if driver.capability_or_none() < (8, 9):
            names = names[:6]
    name = names[seed % len(names)]
    dtype = DTYPES[name]
    cfg = configuration(rng, name, where == "sim")
    majors = "".join(rng.choice(list(pair)) for pair in ("km", "kn", "nm"))
    out = np.float32 if rng.integers(2) or name[0] == "e" else dtype
    out = np.int32 if name in ("int8", "uint8") else out
    largest, problems = (90, 2) if where == "sim" else (500, 9)
    for problem in range(problems):
        extents = rng.integers(1, largest + 1, 3)
        # 16 bytes divide everything, or nothing but elements: kernels of their own.
        extents = -(-extents // 16) * 16 if problem % 2 == 0 else extents | 1
        shape = tuple(map(int, extents))
        a, b, c, exact = operands(shape, dtype, majors, out, seed=int(rng.integers(2**31)))
        c[...] = np.nan if np.dtype(out).kind != "i" else -7
        matmul(a, b.T, out=c, config=cfg, tf32=True)
        cute.synchronize()
        close(c, exact, *((a, b) if name == kind else None for kind in ("float32", "tf32")))
