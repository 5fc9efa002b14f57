"""Predicted against measured times of kernels at realistic sizes.

    python bench/gpu/predicted.py --predict predictions.json    # no GPU: minutes on one core
    python bench/gpu/predicted.py --measure predictions.json [--out rows.json]

Predictions are `cute.sim.predict`'s. Measured times are between two CUDA events around launches
that are queued while the device is kept busy, over their number, medians of several; so launches
follow each other as they do in a program.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "cute")]

ROUNDS, LAUNCHES = 9, 8
M, N = 16384, 8192


def cases():
    """Each case: a name, a function, shapes and types of arrays or other arguments, arguments by
    name, the blocks to simulate, and True where shapes are static.
    """
    import elementwise
    import gather_scatter
    import normalization
    import row_reduction
    import softmax
    import transpose
    import vector_add
    import vector_add_wide

    from basedsl_cute.ops.ampere import gemm as ampere
    from basedsl_cute.ops.hopper.gemm import choose_config, gemm

    f32, f16 = np.float32, np.float16
    long = ((1 << 24,), f32)
    yield "vector_add 2^24", vector_add.vector_add, [long] * 3, {}, 8, False
    yield "vector_add_wide 2^24", vector_add_wide.vector_add_wide, [long] * 3, {}, 8, False
    yield "add f16", elementwise.elementwise_add, [((M, N), f16)] * 3, {}, 8, False
    rows = {"threads": 512}
    yield "softmax f32", softmax.softmax, [((M, N), f32)] * 2, rows, 8, True
    yield "softmax f16", softmax.softmax, [((M, N), f16)] * 2, {"threads": 128}, 8, True
    norm = {"threads": 512, "steps": 1}
    rms = [((M, N), f16), ((N,), f16), ((M, N), f16), 1e-5]
    yield "rms_norm f16", normalization.rms_norm, rms, norm, 8, True
    layer = [((M, N), f32), ((N,), f32), ((N,), f32), ((M, N), f32), 1e-5]
    yield "layer_norm f32", normalization.layer_norm, layer, norm, 8, True
    yield "row_sum f32", row_reduction.row_sum, [((M, N), f32), ((M,), f32)], rows, 8, True
    turned = [((M, N), f32), ((N, M), f32)]
    yield "transpose f32", transpose.transpose, turned, {"tile": 64}, 8, True
    turned = [((M, N), f16), ((N, M), f16)]
    yield "transpose f16", transpose.transpose, turned, {"tile": 128}, 4, True
    few = [((1024, 1024), f32)] * 2
    yield "softmax f32 1024^2", softmax.softmax, few, {"threads": 128}, 8, True
    table = [((262144, 1024), f16), ((262144,), "index"), ((262144, 1024), f16)]
    yield "gather f16", gather_scatter.gather, table, {"threads": 64, "rows": 4}, 8, True
    for n in (1024, 2048, 4096):
        cfg = choose_config(n, n, n, 16, 132)
        settings = {"blocks": 132, "cfg": cfg}
        arrays = [((n, n, 1), f16)] * 3
        yield f"hopper gemm f16 {n}", gemm, arrays, settings, 1, False
    for n in (1024, 2048):
        cfg = ampere.choose_config(n, n, n, 16, 132, 232448)
        settings = {"blocks": 132 * cfg.blocks_per_sm, "cfg": cfg, "vectors": (8, 8, 8)}
        arrays = [((n, n, 1), f16)] * 3
        yield f"ampere gemm f16 {n}", ampere.gemm, arrays, settings, 1, False


def chosen(only):
    return [case for case in cases() if only in case[0]]


def predict_all(only, path):
    """Predict every case, and keep the predictions in a file."""
    from basedsl_cute.sim import predict

    known = json.loads(Path(path).read_text()) if Path(path).exists() else {}
    for name, function, given, more, blocks, fixed in chosen(only):
        begun = time.perf_counter()
        args = [static(host_array(x), fixed) for x in given]
        found = predict(function, *args, first_blocks=blocks, **more)
        known[name] = {
            "seconds": sum(one.seconds for one in found),
            "limited_by": found[0].limited_by,
            "bounds": found[0].bounds,
            "rates": found[0].rates.source,
        }
        shown = f"{known[name]['seconds'] * 1e6:9.1f} us  {known[name]['limited_by']:<8}"
        print(f"{name:<24} {shown} [{time.perf_counter() - begun:.0f} s]", flush=True)
        Path(path).write_text(json.dumps(known, indent=1) + "\n")


def host_array(given):
    """A NumPy array of zeros at a multiple of 256 bytes; an index is a permutation."""
    if isinstance(given, float):
        return given
    shape, dtype = given
    if dtype == "index":
        return np.random.default_rng(0).permutation(shape[0])
    room = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 256, np.uint8)
    start = -room.ctypes.data % 256
    return room[start : room.size - 256 + start].view(dtype).reshape(shape)


def static(value, wanted):
    """The array as a tensor of static shape, if that is wanted."""
    if not wanted or isinstance(value, float):
        return value
    from basedsl_cute.runtime import from_dlpack

    return from_dlpack(value, assumed_align=16)


def device_array(torch, given):
    if isinstance(given, float):
        return given
    shape, dtype = given
    if dtype == "index":
        return torch.randperm(shape[0], device="cuda")
    kind = torch.float16 if dtype is np.float16 else torch.float32
    return torch.randn(shape, device="cuda").to(kind)


def measure_all(only, path, out):
    """Measure every predicted case, and print it beside its prediction."""
    import torch

    predicted = json.loads(Path(path).read_text())
    rows = []
    for name, function, given, more, _, fixed in chosen(only):
        if name not in predicted:
            continue
        try:
            seconds = measured(torch, function, given, more, fixed)
        except Exception as error:
            print(f"{name:<24} fails: {str(error).splitlines()[0]}", flush=True)
            continue
        expected = predicted[name]["seconds"]
        off = expected / seconds - 1
        row = {"case": name, "predicted": expected, "measured": seconds, "error": off}
        rows.append(row | {"limited_by": predicted[name]["limited_by"]})
        print(
            f"{name:<24} predicted {expected * 1e6:9.1f} us, measured {seconds * 1e6:9.1f} us, "
            f"{off:+.0%}  {predicted[name]['limited_by']}",
            flush=True,
        )
        torch.cuda.empty_cache()
    if rows:
        errors = sorted(abs(row["error"]) for row in rows)
        print(f"{len(rows)} kernels: median error {statistics.median(errors):.0%}, ", end="")
        print(f"largest {errors[-1]:.0%}")
    if out:
        Path(out).write_text(json.dumps(rows, indent=1) + "\n")


def measured(torch, function, given, more, fixed):
    """Median device seconds of a launch. Two sets of arrays take turns, so that neither is left in
    the L2 cache where they are large.
    """
    import basedsl_cute as cute

    sets = [[static(device_array(torch, x), fixed) for x in given] for _ in range(2)]
    compiled = cute.compile(function, *sets[0], **more)
    dynamic = {name: value for name, value in more.items() if name == "blocks"}
    for args in sets:
        compiled(*args, **dynamic)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    taken = []
    for _ in range(ROUNDS):
        torch.cuda._sleep(2_000_000)
        start.record()
        for i in range(LAUNCHES):
            compiled(*sets[i % 2], **dynamic)
        stop.record()
        stop.synchronize()
        taken.append(start.elapsed_time(stop) / 1e3 / LAUNCHES)
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", metavar="FILE", help="predict, and keep it in FILE")
    parser.add_argument("--measure", metavar="FILE", help="measure what FILE predicts")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--out", help="write the measured rows to this JSON file")
    options = parser.parse_args()
    if options.predict:
        predict_all(options.only, options.predict)
    if options.measure:
        measure_all(options.only, options.measure, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
