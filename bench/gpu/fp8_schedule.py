"""Which part of the scaled product of 8-bit floats (`tests/cute/programs/hopper_pingpong.py`) takes
the time that its bound (`fp8_promotion.py`) does not have: parts are left out, one at a time.

    python bench/gpu/fp8_schedule.py [--size 4096]

What is left out makes results wrong; only the first row's are right. Rates are medians of 9 calls
of each in turns.
"""

import argparse
import statistics

import torch
from programs import dynamic, from_dlpack, normal, poisoned, program

import basedsl_cute as cute

SIZES = (128, 128)


def kinds(base):
    class NoScales(base):
        """Scales are not loaded."""

        @cute.jit
        def scales_of(self, loaded, step):
            return (cute.Float32(1), cute.Float32(1), cute.Float32(1))

    class NoSums(base):
        """The sums are left out but for one of a thread's 64 results."""

        @cute.jit
        def add(self, acc, part, scales):
            acc[0] += part[0] * scales[0] * scales[1] * scales[2]

    class Neither(NoSums):
        """Neither scales nor sums."""

        @cute.jit
        def scales_of(self, loaded, step):
            return (cute.Float32(1), cute.Float32(1), cute.Float32(1))

    class NoResults(base):
        """Results are not written."""

        @cute.jit
        def epilogue(self, tma_d, gD, sD, acc, tiled_mma, tidx, wg, warp_idx, store):
            total = acc[0]
            for i in cute.range_constexpr(1, cute.size(acc)):
                total += acc[i]
            if total == 12345.0:
                cute.arch.inline_ptx("trap;", ())

    return {
        "whole": base,
        "no scales loaded": NoScales,
        "no sums": NoSums,
        "neither": Neither,
        "no results written": NoResults,
    }


def bytes_of(x):
    tensor = from_dlpack(x.unsqueeze(-1).view(torch.uint8), assumed_align=16)
    tensor.element_type = cute.Float8E4M3FN
    return tensor.mark_layout_dynamic(leading_dim=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--size", type=int, default=4096)
    n = parser.parse_args().size
    stream = cute.cuda.default_stream()
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    a, b = (normal(n, n).to(torch.float8_e4m3fn) for _ in range(2))
    c = poisoned(n, n, dtype=torch.bfloat16)
    scales = [torch.rand(n, n // 128, device="cuda") + 0.5 for _ in range(2)]
    views = [bytes_of(a), bytes_of(b), dynamic(c.unsqueeze(-1), 1)]
    given = dynamic(scales[0], 1), dynamic(scales[1][: n // 128], 1)
    calls = {}
    base = program("hopper_pingpong").HopperGemm
    for text, kind in kinds(base).items():
        for overlap, batch in ((1, 1), (1, 4), (4, 1)):
            gemm = kind(cute.Float32, SIZES, (1, 2), False, 1, overlap, batch)
            try:
                compiled = cute.compile(gemm, *views, blocks // 2, stream, given)
            except Exception as error:  # the others go on
                print(text, overlap, batch, "FAILED:", str(error)[:200])
                continue
            call = lambda f=compiled: f(*views, blocks // 2, stream, given)  # noqa: E731
            calls[f"{text}, {overlap} in a row, scales of {batch}"] = call
    plain = base(cute.Float32, SIZES, (1, 2), False, 1)
    compiled = cute.compile(plain, *views, blocks // 2, stream)
    calls["one accumulator"] = lambda f=compiled: f(*views, blocks // 2, stream)
    times = {name: [] for name in calls}
    for turn in range(11):
        for name, call in calls.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(1_000_000)
            start.record()
            for _ in range(4):
                call()
            stop.record()
            stop.synchronize()
            if turn >= 2:
                times[name].append(start.elapsed_time(stop) / 4e3)
    for name, each in times.items():
        print(f"{name:<44} {2 * n**3 / statistics.median(each) / 1e12:7.1f} TFLOP/s", flush=True)


if __name__ == "__main__":
    main()
