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
from vector_add_wide import vector_add_wide

import basedsl_cute as cute
from basedsl_cute.device import driver

N = 1 << 24


def main():
    if not driver.is_available():
        print("vector add against copy: skipped, no CUDA driver here")
        return
    import torch

    sets = [[torch.randn(N, device="cuda") for _ in range(3)] for _ in range(4)]
    copies = [torch.randn(2, N * 3 // 2, device="cuda") for _ in range(4)]
    copied = []
    times = {vector_add: [], vector_add_wide: []}
    compiled = {f: cute.compile(f, *sets[0]) for f in times}
    for f, call in compiled.items():
        for a, b, c in sets:
            c.fill_(float("nan"))
            call(a, b, c)
            assert torch.equal(c, a + b), f"{f} is wrong"
    for _ in range(30):
        for f, call in compiled.items():
            times[f].append(_time([lambda s=s, call=call: call(*s) for s in sets], torch))
        copied.append(_time([lambda s=s: s[1].copy_(s[0]) for s in copies], torch))
    gigabytes = 3 * 4 * N / 1e9
    copy = statistics.median(copied[5:])
    print(f"copy                    {gigabytes / copy:6.0f} GB/s")
    for f, seconds in times.items():
        ours = statistics.median(seconds[5:])
        name = f.fn.__name__
        print(f"{name:<22}  {gigabytes / ours:6.0f} GB/s   {copy / ours:.3f} of copy")


def _time(calls, torch):
    """Seconds on the device for each of `calls`, queued while the device is kept busy."""
    start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
    torch.cuda._sleep(4_000_000)  # about 2 ms: the host is ahead when the clock starts
    start.record()
    for call in calls:
        call()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3 / len(calls)


if __name__ == "__main__":
    main()
