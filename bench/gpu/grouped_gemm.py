"""The grouped Hopper GEMM against a loop of torch.matmul, in one run.

    python bench/gpu/grouped_gemm.py [--out rows.json]

Groups are of random sizes as a mixture of experts has them, or all alike. Inputs are random normal
fp16; outputs are filled with NaN before the checked call and compared with float64; errors count
what rounding of the output and of the sums may cost as 1. Timing: events around several calls,
contenders in turns, medians over the rounds. The loop is also timed as a CUDA graph, which takes
the CPU out of it.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import torch

import basedsl_cute as cute
from basedsl_cute.ops.hopper.grouped_gemm import (
    Config,
    HopperGemmKinds,
    grouped_gemm,
    maps_of,
    tables,
)
from basedsl_cute.utils import LayoutEnum

ROUNDS, CALLS = 15, 3
KINDS = HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, *(LayoutEnum.ROW_MAJOR,) * 3)
CONFIGS = {
    "128x128": Config((128, 128, 64), 6),
    "128x256": Config(),
    "128x256, pairs along N": Config(cluster=(1, 2)),
    "128x128 in turns, pairs along N": Config((128, 128, 64), 6, pingpong=True, cluster=(1, 2)),
    "128x128 in turns, pairs along M": Config((128, 128, 64), 6, pingpong=True, cluster=(2, 1)),
    "128x192 in turns": Config((128, 192, 64), pingpong=True, slots=1),
}


def cases():
    generator = torch.Generator().manual_seed(0)
    experts = (torch.rand(32, generator=generator) * 1024).int().tolist()
    few = (torch.rand(64, generator=generator) * 128).int().tolist()
    return {
        "32 experts, M up to 1024, N 4096, K 2048": [(m, 4096, 2048) for m in experts],
        "64 experts, M up to 128, N 2048, K 1024": [(m, 2048, 1024) for m in few],
        "8 of 2048 x 2048 x 2048": [(2048, 2048, 2048)] * 8,
        "16 of 512 x 512 x 512": [(512, 512, 512)] * 16,
    }


def measure(name, shapes):
    triples = [
        (
            torch.randn(m, k, device="cuda").half(),
            torch.randn(n, k, device="cuda").half(),
            torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16),
        )
        for m, n, k in shapes
    ]
    described = [torch.from_numpy(x).cuda() for x in tables(triples)]
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    outputs = [torch.empty_like(c) for _, _, c in triples]

    def loop():
        for (a, b, _), out in zip(triples, outputs, strict=True):
            torch.matmul(a, b.T, out=out)

    contenders = {"loop": loop}
    for label, config in CONFIGS.items():
        maps = torch.zeros(blocks, maps_of(config), 16, dtype=torch.int64, device="cuda")
        arguments = (*described, maps)
        contenders[label] = lambda arguments=arguments, config=config: grouped_gemm(
            *arguments, KINDS, config
        )
    row = {"case": name, "error": {}}
    for label in CONFIGS:
        for _, _, c in triples:
            c.fill_(float("nan"))
        contenders[label]()
        torch.cuda.synchronize()
        row["error"][label] = max(error_of(*triple) for triple in triples)
    loop()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loop()
    contenders["loop, as a graph"] = graph.replay
    times = {label: [] for label in contenders}
    for turn in range(ROUNDS + 2):
        for label, call in contenders.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(200_000)
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            torch.cuda.synchronize()
            if turn >= 2:
                times[label].append(begin.elapsed_time(end) / CALLS)
    flops = sum(2 * m * n * k for m, n, k in shapes)
    row["TFLOP/s"] = {k: flops / statistics.median(v) / 1e9 for k, v in times.items()}
    return row


def error_of(a, b, c):
    """The largest error of C, where rounding may cost 1; infinite where it is not written."""
    if not c.numel():
        return 0.0
    k = a.shape[1]
    exact = a.double() @ b.double().T
    allowed = torch.finfo(c.dtype).eps * exact.abs() + 1e-3 * k**0.5 * 2**-4 + 1e-5 * k
    error = ((c.double() - exact).abs() / allowed).max().item()
    return error if error == error else float("inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    options = parser.parse_args()
    rows = [measure(*case) for case in cases().items()]
    for row in rows:
        print(row["case"], "| largest errors", {k: f"{v:.3g}" for k, v in row["error"].items()})
        rates = row["TFLOP/s"]
        for label, rate in rates.items():
            ratio = rate / max(rates["loop"], rates["loop, as a graph"])
            print(f"    {label:32} {rate:7.1f} TFLOP/s  {ratio:.2f} of the better loop")
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 0 if all(error < 1 for row in rows for error in row["error"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
