"""A float32 vector add of 2^24 elements on the GPU against a device-to-device copy.

    python bench/vector_add.py

Both move through the same bytes (the copy is timed on 1.5 times the elements: it reads and writes
one array where the sum reads two and writes one). Alternating, CUDA events, medians.
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "cute"))

from vector_add import vector_add

import basedsl_cute as cute
from basedsl_cute.runtime import driver

N = 1 << 24


def main():
    if not driver.is_available():
        print("vector add against copy: skipped, no CUDA driver here")
        return
    import torch

    sets = [[torch.randn(N, device="cuda") for _ in range(3)] for _ in range(4)]
    copies = [torch.randn(2, N * 3 // 2, device="cuda") for _ in range(4)]
    compiled = cute.compile(vector_add, *sets[0])
    adds, copied = [], []
    for i in range(60):
        a, b, c = sets[i % 4]
        c.fill_(float("nan"))
        adds.append(_time(lambda a=a, b=b, c=c: compiled(a, b, c), torch))
        source, target = copies[i % 4]
        copied.append(_time(lambda s=source, t=target: t.copy_(s), torch))
        if i < 4:
            assert torch.equal(c, a + b), "wrong result"
    ours, copy = (statistics.median(times[10:]) for times in (adds, copied))
    gigabytes = 3 * 4 * N / 1e9
    print(
        f"vector add 2^24 float32: {gigabytes / ours:.0f} GB/s, copy {gigabytes / copy:.0f} GB/s, "
        f"ratio {copy / ours:.3f}"
    )


def _time(call, torch):
    start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
    start.record()
    call()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3


if __name__ == "__main__":
    main()
