"""Counts of `cute.sim.profile` beside those of Nsight Compute on a GPU, for a dozen kernels.

    python bench/gpu/counters.py [--out rows.json] [--only TEXT]
    python bench/gpu/counters.py --sim        # no GPU: the simulator's counts alone

Both run the same calls on arrays of the same shapes. Metrics that this ncu does not know for this
GPU are left out, and named.
"""

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "cute")]

SECONDS = 60  # for ncu

# Our count, from a profile's total, and the metric of ncu that counts the same.
PAIRS = {
    "ld sectors": (lambda t: t.load_sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "st sectors": (lambda t: t.store_sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    "ld conflicts": (
        lambda t: t.load_bank_conflicts,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    ),
    "st conflicts": (
        lambda t: t.store_bank_conflicts,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    ),
    "ld waves": (
        lambda t: t.load_wavefronts,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ),
    "st waves": (
        lambda t: t.store_wavefronts,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ),
    "global ld": (
        lambda t: kinds(t, "global load"),
        "smsp__sass_inst_executed_op_global_ld.sum",
    ),
    "global st": (
        lambda t: kinds(t, "global store"),
        "smsp__sass_inst_executed_op_global_st.sum",
    ),
    "shared ld": (
        lambda t: kinds(t, "shared load"),
        "smsp__sass_inst_executed_op_shared_ld.sum",
    ),
    "shared st": (
        lambda t: kinds(t, "shared store", "matrix store"),
        "smsp__sass_inst_executed_op_shared_st.sum",
    ),
    "ldmatrix": (lambda t: kinds(t, "matrix load"), "smsp__inst_executed_op_ldsm.sum"),
    "cp.async": (
        lambda t: kinds(t, "asynchronous copy"),
        "smsp__inst_executed_op_ldgsts.sum",
    ),
    "mma": (lambda t: kinds(t, "tensor core"), "sm__inst_executed_pipe_tensor.sum"),
    "hmma": (lambda t: kinds(t, "tensor core"), "sm__inst_executed_pipe_tensor_op_hmma.sum"),
    "gmma": (lambda t: kinds(t, "tensor core"), "sm__inst_executed_pipe_tensor_op_gmma.sum"),
    "fma": (
        lambda t: kinds(t, "float multiply-add"),
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    ),
    "fadd": (
        lambda t: kinds(t, "float add"),
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    ),
    "fmul": (
        lambda t: kinds(t, "float multiply"),
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    ),
    "all": (lambda t: round(t.executed), "smsp__inst_executed.sum"),
}
PER_THREAD = ("fma", "fadd", "fmul")  # ncu counts threads, we count warps


def kinds(total, *names):
    return round(sum(total.instructions.get(name, 0) for name in names))


def cases():
    """Each case: a name, a function, NumPy arrays, further arguments by name; True where shapes are
    to be static.
    """
    import elementwise
    import gather_scatter
    import normalization
    import row_reduction
    import softmax
    import transpose
    import vector_add_wide

    from basedsl_cute.ops.ampere import gemm as ampere
    from basedsl_cute.ops.hopper.gemm import Config, gemm
    from tests.cute.sim.profiling import kernels

    rng = np.random.default_rng(0)

    def f32(*shape):
        return rng.standard_normal(shape, np.float32)

    def f16(*shape):
        return rng.standard_normal(shape, np.float32).astype(np.float16)

    wide = f32(256 * 512 + 1)
    yield "copy", kernels.copied, [f32(1 << 16), f32(1 << 16)], {}
    yield "copy, every 8th", kernels.copied, [f32(1 << 16), f32(1 << 13)], {"step": 8}
    yield "copy, a view", kernels.copied, [wide[1:], f32(256 * 512)], {}
    yield "odd lanes", kernels.odd, [f32(512)], {}
    for pitch in (32, 33, 36):
        name = f"turn, pitch {pitch}"
        yield name, kernels.turn, [f32(32, 32), f32(32, 32)], {"pitch": pitch}
    for width, lanes in ((2, 1), (2, 16), (2, 32), (4, 1), (4, 8), (4, 16), (4, 32)):
        name = f"shared vectors {4 * width} bytes, {lanes} lanes"
        arguments = {"width": width, "lanes": lanes}
        yield name, kernels.vectors, [f32(32, width)], arguments, True
    for swizzled in (False, True):
        arguments = {"swizzled": swizzled}
        yield f"ldmatrix, swizzled {swizzled}", kernels.matrices, [f16(32)], arguments
    yield "add_wide", vector_add_wide.vector_add_wide, [f32(1 << 16) for _ in range(3)], {}
    yield "elementwise", elementwise.elementwise_add, [f16(64, 2048) for _ in range(3)], {}
    yield "softmax", softmax.softmax, [f32(64, 2048), f32(64, 2048)], {"threads": 256}, True
    norm = [f16(64, 4096), f16(4096), f16(64, 4096), 1e-5]
    yield "rms_norm", normalization.rms_norm, norm, {"threads": 256, "steps": 1}, True
    yield "row_sum", row_reduction.row_sum, [f32(64, 2048), f32(64)], {"threads": 256}, True
    yield "transpose f32", transpose.transpose, [f32(256, 128), f32(128, 256)], {"tile": 64}, True
    yield "transpose f16", transpose.transpose, [f16(256, 128), f16(128, 256)], {"tile": 64}, True
    index = rng.permutation(512)
    gathered = [f16(512, 256), index, f16(512, 256)]
    yield "gather", gather_scatter.gather, gathered, {"threads": 32, "rows": 4}, True
    a, b, c = f16(256, 128, 1), f16(256, 128, 1), f16(256, 256, 1)
    settings = {"blocks": 264, "cfg": ampere.Config(), "vectors": (8, 8, 8)}
    yield "ampere gemm", ampere.gemm, [a, b, c], settings
    settings = {"blocks": 132, "cfg": Config(tile=(128, 128, 64))}
    yield "hopper gemm", gemm, [a, b, c], settings


def chosen(only):
    return [(*case, False)[:5] for case in cases() if only in case[0]]


def static(value, wanted):
    """The array as a tensor of static shape, if that is wanted."""
    if not wanted or isinstance(value, float):
        return value
    from basedsl_cute.runtime import from_dlpack

    return from_dlpack(value, assumed_align=16)


def aligned(value):
    """A copy of a NumPy array at a multiple of 256 bytes, as a GPU's allocator gives it."""
    if not isinstance(value, np.ndarray):
        return value
    room = np.empty(value.nbytes + 256, np.uint8)
    start = -room.ctypes.data % 256
    made = room[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    made[...] = value
    return made


def child(only):
    """Call every case once on the GPU, and name those whose call fails."""
    import torch

    for name, function, arrays, more, fixed in chosen(only):
        given = [static(on_gpu(torch, x), fixed) for x in arrays]
        try:
            function(*given, **more)
            torch.cuda.synchronize()
            print(f"CASE {name}", flush=True)
        except Exception as error:  # the others go on
            print(f"FAILED {name}: {error}", flush=True)


def on_gpu(torch, value):
    """The array on the GPU, a view at the same offset in what it is a view of."""
    if not isinstance(value, np.ndarray):
        return value
    owner = value if value.base is None else value.base
    offset = value.ctypes.data - owner.ctypes.data
    whole = torch.from_numpy(owner).cuda()
    return whole if value is owner else whole.flatten()[offset // value.itemsize :]


def counted(only):
    """The counts of ncu: a dict of metrics for each launch, the cases' names, what went wrong."""
    if shutil.which("ncu") is None:
        return [], [], "there is no ncu here"
    asked = subprocess.run(
        ["ncu", "--query-metrics", "--chips", "gh100"], capture_output=True, text=True, timeout=30
    ).stdout
    known = {line.split()[0] for line in asked.splitlines() if line.split()}
    metrics = [metric for _, metric in PAIRS.values()]
    missing = [m for m in metrics if known and m.split(".")[0] not in known]
    if missing and len(missing) < len(metrics):
        print("not known to this ncu:", ", ".join(missing))
        metrics = [m for m in metrics if m not in missing]
    command = ["ncu", "--csv", "--page", "raw", "--metrics", ",".join(metrics)]
    command += [sys.executable, __file__, "--child", "--only", only]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as late:
        return [], [], f"not done after {SECONDS} s: {str(late.stdout)[-300:]}"
    lines = made.stdout.splitlines()
    names = [line.removeprefix("CASE ") for line in lines if line.startswith("CASE ")]
    table = [line for line in lines if line.startswith('"')]
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(table))) if row.get("ID")]
    wrong = [line for line in lines if line.startswith(("FAILED", "==ERROR=="))]
    if made.returncode and not rows:
        wrong.append(made.stderr[-300:])
    return rows, names, "; ".join(wrong)


def number(text):
    """A value of ncu; None where there is none."""
    try:
        return float(text.replace(",", ""))
    except (ValueError, AttributeError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--sim", action="store_true", help="the simulator's counts alone")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.only)
        return 0
    rows, names, wrong = ([], [], "") if options.sim else counted(options.only)
    if wrong:
        print(wrong)
    if len(rows) != len(names):
        print(f"{len(rows)} launches counted for {len(names)} cases")
    found = dict(zip(names, rows, strict=False))
    table = [compare(case, found.get(case[0])) for case in chosen(options.only)]
    if options.out:
        Path(options.out).write_text(json.dumps(table, indent=1) + "\n")
    return 0


def compare(case, measured):
    """Print and return one case: each count of ours, and ncu's where it has one."""
    from basedsl_cute.sim import profile

    name, function, arrays, more, fixed = case
    given = [static(aligned(x), True) for x in arrays] if fixed else arrays
    total = profile(function, *given, **more).kernel.total
    row = {"case": name}
    shown = []
    for key, (count, metric) in PAIRS.items():
        ours = count(total)
        theirs = number(measured.get(metric)) if measured else None
        if theirs is not None and key in PER_THREAD:
            theirs /= 32
        row[key] = [ours, theirs]
        if ours or theirs:
            mark = "" if theirs is None else f"/{theirs:g}{'' if theirs == ours else ' *'}"
            shown.append(f"{key} {ours}{mark}")
    print(f"{name:<24} {', '.join(shown)}", flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
