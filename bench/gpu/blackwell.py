"""Matrix products on Blackwell GPUs, against cuBLAS: dense, block-scaled and grouped by tcgen05 on
data-center GPUs (sm_100 to sm_110), dense and block-scaled by mma.sync on GeForce (sm_120, sm_121).

    python bench/gpu/blackwell.py [--out rows.json] [--only TEXT ...] [--check]

Inputs are fresh random normal numbers, quantised by `ops.quantize` for block-scaled products;
outputs are filled with NaN before the checked call, of which 256 rows are compared with float64 of
the numbers that are multiplied. Errors count what rounding of the output and of the sums may cost
as 1. Timing is that of gemm.py. The peer of block-scaled products is `torch._scaled_mm`; where it
has no such product, the row says so and has no ratio. The products of GeForce GPUs are those of
tests/cute/blackwell/geforce_gemm.py. `--check` times nothing; without a GPU it takes small products
on the simulator.
"""

import argparse
import importlib.util
import json
import sys
import traceback
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gemm import timed

CUBES = [(8192,) * 3, (4096,) * 3, (2048,) * 3]
FORMS = ("mxfp8", "mxfp4", "nvfp4")
DENSE = ("float16", "bfloat16", "float8_e4m3fn")
GROUPS = {
    "8 of 2048x2048x2048": [(2048, 2048, 2048)] * 8,
    "64 of up to 256x2048x1024": [(32 * i % 256 + 8, 2048, 1024) for i in range(64)],
}
ROWS = 256  # that are compared with float64
DATACENTER, GEFORCE = (10, 11), (12,)  # major compute capabilities


def main():
    options = arguments()
    import torch

    on_gpu = torch.cuda.is_available()
    major = torch.cuda.get_device_capability()[0] if on_gpu else None
    if not on_gpu and not options.check:
        print("no CUDA device here")
        return 0
    torch.manual_seed(0)
    rows = []
    for name, make in cases(torch, major):
        if options.only and not any(text in name for text in options.only):
            continue
        row = {"case": name}
        rows.append(row)
        try:
            row |= measured(torch, make(), not options.check)
        except Exception as error:  # the others go on
            row["failure"] = f"{type(error).__name__}: {error}"
            traceback.print_exc(limit=4)
        print(line(row), flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 1 if any("failure" in row or not row["error"] < 1 for row in rows) else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", nargs="*", help="cases as printed, or parts of them")
    parser.add_argument("--check", action="store_true", help="compile and compare, time nothing")
    return parser.parse_args()


def cases(torch, major):
    """Names and makers of the products that a GPU of a major compute capability has; None is the
    simulator, which has all of them, and takes small ones.
    """
    cubes = CUBES if major else [(128, 128, 128)]
    for dtype in DENSE:
        for shape in cubes:
            yield f"dense {dtype} {text(shape)}", partial(dense, torch, dtype, shape)
    if major in (None, *DATACENTER):
        for form in FORMS:
            for shape in cubes:
                yield f"scaled {form} {text(shape)}", partial(scaled, torch, form, shape)
        groups = GROUPS if major else {"2 of 128x64x64": [(128, 64, 64)] * 2}
        for name, shapes in groups.items():
            yield f"grouped float16 {name}", partial(grouped, torch, shapes)
    if major in (None, *GEFORCE):
        for form in FORMS:
            for shape in cubes:
                for name, turns in (("together", False), ("in turns", True)):
                    yield (
                        f"scaled {form} {text(shape)}, warps {name}",
                        partial(geforce, torch, form, shape, turns),
                    )


def text(shape):
    return "x".join(map(str, shape))


class Case:
    """Calls by name, of which "ours" fills `out`; `exact(rows)` gives what its first rows are."""

    def __init__(self, calls, out, exact, flops, k, without=""):
        self.calls, self.out, self.exact = calls, out, exact
        self.flops, self.k, self.without = flops, k, without


def measured(torch, case, is_timed):
    """The row of a case: its error, and with `is_timed` TFLOP/s of each contender."""
    case.calls["ours"]()
    if case.out.is_cuda:
        torch.cuda.synchronize()
    exact = case.exact(min(ROWS, case.out.shape[0]))
    got = case.out[: exact.shape[0]].double()
    eps = torch.finfo(case.out.dtype).eps
    scale = exact.abs().mean().item() / case.k**0.5  # of one product
    allowed = eps * exact.abs() + scale * (1e-3 * case.k**0.5 + 1e-5 * case.k)
    error = ((got - exact).abs() / allowed).max().item()
    row = {"error": error if error == error else float("inf"), "without": case.without}
    return row | (timed(case.calls, case.flops) if is_timed else {})


def line(row):
    if "failure" in row:
        return f"{row['case']:<50} FAILED: {row['failure'][:120]}"
    state = "" if row["error"] < 1 else "  WRONG"
    if "ours" not in row:
        return f"{row['case']:<50} checked only, error {row['error']:.2f}{state}"
    against = f"no peer: {row['without']}" if row["without"] else ""
    for peer in row.keys() & {"cublas", "loop"}:
        against = f"{row[peer]:8.1f} of {peer}, {row['ours'] / row[peer]:.3f}"
    return (
        f"{row['case']:<50} {row['ours']:8.1f} TFLOP/s {against}, error {row['error']:.2f}{state}"
    )


# Products ----------------------------------------------------------------------------------------


def normal(torch, *shape, dtype="float16"):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.randn(shape, device=device).to(getattr(torch, dtype))


def poisoned(torch, m, n, dtype):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.full((m, n), float("nan"), device=device, dtype=dtype)


def dense(torch, dtype, shape):
    """`ops.matmul` of a linear layer's operands."""
    from basedsl_cute.ops import matmul

    m, n, k = shape
    a, b = normal(torch, m, k, dtype=dtype), normal(torch, n, k, dtype=dtype)
    narrow = dtype.startswith("float8")
    kind = torch.bfloat16 if narrow else getattr(torch, dtype)
    out, theirs = (poisoned(torch, m, n, kind) for _ in range(2))
    one = torch.ones(1, device=a.device)

    def cublas():
        if narrow:
            torch._scaled_mm(a, b.T, one, one, out_dtype=kind, out=theirs)
        else:
            torch.matmul(a, b.T, out=theirs)

    calls = {"ours": lambda: matmul(a, b.T, out=out), "cublas": cublas}
    return Case(calls, out, lambda rows: a[:rows].double() @ b.double().T, 2 * m * n * k, k)


def operands(torch, form, shape):
    """Two quantised operands, and the result's first rows by their numbers."""
    from basedsl_cute.ops import quantize

    m, n, k = shape
    a, b = (quantize(normal(torch, rows, k), form) for rows in (m, n))
    return a, b, lambda rows: numbers(torch, a)[:rows] @ numbers(torch, b).T


def numbers(torch, x):
    """The numbers of a block-scaled matrix in float64."""
    import ml_dtypes

    from basedsl_cute.ops.blackwell.quantize import FORMATS

    rows, k = x.shape
    vector = FORMATS[x.form].vector
    if FORMATS[x.form].element.width == 4:
        codes = torch.stack((x.elements & 15, x.elements >> 4), -1).reshape(rows, k)
        known = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    else:
        codes = x.elements
        known = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    kind = ml_dtypes.float8_e4m3fn if vector == 16 else ml_dtypes.float8_e8m0fnu
    factors = np.arange(256, dtype=np.uint8).view(kind)
    tables = [
        torch.from_numpy(np.nan_to_num(table.astype(np.float64))).to(x.elements.device)
        for table in (known, factors)
    ]
    # Chunks of 128 rows by 4 factors: (row % 32) 16 bytes apart, then row / 32, then the factor.
    down, across = -(-rows // 128), -(-k // (4 * vector))
    chunks = x.factors.reshape(down, across, 32, 4, 4).permute(0, 3, 2, 1, 4)
    by_row = chunks.reshape(128 * down, 4 * across)[:rows, : k // vector]
    scales = tables[1][by_row.long()].repeat_interleave(vector, 1)
    return tables[0][codes.long()] * scales


def scaled(torch, form, shape):
    """`ops.matmul` of block-scaled matrices."""
    from basedsl_cute.ops import matmul

    m, n, k = shape
    a, b, exact = operands(torch, form, shape)
    out = poisoned(torch, m, n, torch.bfloat16)
    calls = {"ours": lambda: matmul(a, b.T, out=out)}
    without = peer(torch, a, b, calls)
    return Case(calls, out, exact, 2 * m * n * k, k, without)


def peer(torch, a, b, calls):
    """Add cuBLAS's product to the calls; or tell why there is none."""
    types = {
        "mxfp8": ("float8_e4m3fn", "float8_e8m0fnu"),
        "nvfp4": ("float4_e2m1fn_x2", "float8_e4m3fn"),
    }
    if not a.elements.is_cuda or a.form not in types:
        return f"torch._scaled_mm has no {a.form}"
    try:
        element, factor = (getattr(torch, name) for name in types[a.form])
        x, y = a.elements.view(element), b.elements.view(element).t()
        scales = a.factors.view(factor), b.factors.view(factor)
        cublas = partial(torch._scaled_mm, x, y, *scales, out_dtype=torch.bfloat16)
        cublas()
    except (AttributeError, RuntimeError, ValueError) as error:
        return f"torch._scaled_mm: {str(error).splitlines()[0][:80]}"
    calls["cublas"] = cublas
    return ""


def grouped(torch, shapes):
    """`ops.blackwell.grouped_gemm`, whose peer is a loop of torch.matmul."""
    import basedsl_cute as cute
    from basedsl_cute.ops.blackwell.grouped_gemm import (
        MAPS,
        BlackwellGemmKinds,
        Config,
        grouped_gemm,
        tables,
    )
    from basedsl_cute.sim import reachable
    from basedsl_cute.utils import LayoutEnum

    row = LayoutEnum.ROW_MAJOR
    kinds = BlackwellGemmKinds(*(cute.Float16,) * 3, *(row,) * 3, cute.Float32)
    # One array for all results, so that the rows of the first group are the first ones.
    places = np.cumsum([0, *(m for m, _, _ in shapes)])
    n = shapes[0][1]
    whole, theirs = (poisoned(torch, int(places[-1]), n, torch.float16) for _ in range(2))
    triples = [
        (normal(torch, m, k), normal(torch, n, k), whole[at : at + m])
        for (m, n, k), at in zip(shapes, places, strict=False)
    ]
    device = whole.device
    described = [torch.from_numpy(x).to(device) for x in tables(triples)]
    blocks = 2
    if whole.is_cuda:
        blocks = torch.cuda.get_device_properties(0).multi_processor_count
    maps = torch.zeros(blocks, MAPS, 16, dtype=torch.int64, device=device)

    def loop():
        for (a, b, _), at in zip(triples, places, strict=False):
            torch.matmul(a, b.T, out=theirs[at : at + a.shape[0]])

    def exact(rows):
        found = []
        for a, b, _ in triples:
            found.append(a.double() @ b.double().T)
            rows -= a.shape[0]
            if rows <= 0:
                break
        return torch.cat(found)

    def ours():
        # The simulator knows addresses in memory only of what it is told about.
        told = [x.view(torch.int16).numpy() for x in sum(triples, ()) if not x.is_cuda]
        with reachable(*told):
            grouped_gemm(*described, maps, kinds, Config(dynamic=False))

    flops = sum(2 * m * n * k for m, n, k in shapes)
    calls = {"ours": ours, "loop": loop}
    return Case(calls, whole, exact, flops, shapes[0][2])


def geforce(torch, form, shape, in_turns):
    """The block-scaled product by mma.sync, eight warps a tile or two groups in turns."""
    import basedsl_cute as cute
    from basedsl_cute.nvgpu import warp

    gemm = program("geforce_gemm").GeforceGemm
    f4, f32, e8 = cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU
    op = {
        "mxfp8": warp.MmaMXF8Op(cute.Float8E4M3FN, f32, e8),
        "mxfp4": warp.MmaMXF4Op(f4, f32, e8),
        "nvfp4": warp.MmaMXF4NVF4Op(f4, f32, cute.Float8E4M3FN),
    }[form]
    m, n, k = shape
    a, b, exact = operands(torch, form, shape)
    out = poisoned(torch, m, n, torch.float16)
    blocks = 2
    if out.is_cuda:
        blocks = torch.cuda.get_device_properties(0).multi_processor_count
    kernel = gemm(op, (128, 64 if in_turns else 128, 128), in_turns, blocks)
    given = (a.elements, b.elements, a.factors, b.factors, out)
    tensors = [cute.runtime.from_dlpack(x, assumed_align=16) for x in given]
    call = cute.compile(kernel, *tensors)
    calls = {"ours": lambda: call(*tensors)}
    without = peer(torch, a, b, calls)
    return Case(calls, out, exact, 2 * m * n * k, k, without)


def program(name):
    """A module of tests/cute/blackwell."""
    path = Path(__file__).resolve().parents[2] / "tests" / "cute" / "blackwell" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"cute_program_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
