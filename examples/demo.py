"""`make demo`: the main job on real arrays, checked against NumPy, with a short report."""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import basedsl_cute as cute

sys.path.insert(0, str(Path(__file__).parent / "cute"))

from tiled_matmul import matmul
from vector_add import vector_add

STAGES = {
    "pre-stage": ("pre-stage",),
    "trace": ("trace",),
    "lowering": ("lower-cute", "nvvm", "host", "launches"),
    "device code": ("ptx", "cubin", "kernels"),
    "host code": ("exact-math", "llvm", "asserts", "llvmir", "entry", "optimised", "object"),
    "load": ("load",),
}


def run(title, function, arrays, expected, tolerance):
    start = perf_counter()
    compiled = cute.compile(function, *arrays)
    compile_ms = (perf_counter() - start) * 1e3
    out = arrays[-1]
    out.fill(np.nan)  # nothing counts that the kernel did not write
    start = perf_counter()
    compiled(*arrays)
    cute.synchronize()
    run_ms = (perf_counter() - start) * 1e3
    error = float(np.abs(out - expected).max())
    verdict = "matches NumPy" if error <= tolerance else "DOES NOT MATCH NumPy"
    print(f"{title}\n  {verdict}: largest error {error:.1e}")
    shares = [
        f"{name} {sum(compiled.seconds.get(s, 0.0) for s in steps) * 1e3:.1f}"
        for name, steps in STAGES.items()
    ]
    print(f"  compiled in {compile_ms:.0f} ms ({', '.join(shares)}); ran in {run_ms:.1f} ms\n")
    return error <= tolerance


def main():
    rng = np.random.default_rng()
    print(f"basedsl demo, target: {cute.target_description()}\n")
    a, b = rng.standard_normal((2, 1_000_000), np.float32)
    ok = run("Vector addition, 1,000,000 float32", vector_add, (a, b, np.empty_like(a)), a + b, 0.0)
    a, b = rng.standard_normal((2, 128, 128), np.float32)
    ok &= run(
        "Matrix product through shared memory, 128 x 128 x 128 float32",
        matmul,
        (a, b, np.empty((128, 128), np.float32)),
        (a.astype(np.float64) @ b).astype(np.float32),
        1e-3,
    )
    print("Next: examples/cute/*.py and examples/toy/*.py, docs/, and `make test`.")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
