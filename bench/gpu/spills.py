"""Registers and spills of the attention kernels that `ops` chooses, by ptxas, without a GPU.

    python bench/gpu/spills.py [--arch sm_90a] [--workers 2] [--only TEXT ...] [--all]

Calls `ops.attention` and `ops.attention_backward` with arrays of NumPy as if they were on a GPU,
and compiles what they would launch: heads of each extent with a configuration of its own, elements
of 16 and 8 bits, without a mask, causal, in a window, with masks and scores of the user's, packed.
Prints a row for each kernel that keeps numbers of a thread in memory, or `--all`, and fails if
there is one. CUDA_TOOLKIT_PATH names the toolkit whose ptxas compiles.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import ml_dtypes
import numpy as np

import basedsl_cute as cute
from basedsl_cute.dsl.steps import SpillWarning
from basedsl_cute.hardware.targets import target_of
from basedsl_cute.lowering.ptx.ptxas import toolkit_version
from basedsl_cute.ops import attention, attention_backward
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash import gradients

KEYS, HEADS, MULTIPROCESSORS = 2048, 2, 132
STARTS = np.array([0, 700, 2 * KEYS], np.int32)
DOCUMENTS = np.repeat(np.arange(KEYS // 256), 256)
DOCUMENTS_OF = np.stack([DOCUMENTS, DOCUMENTS]).astype(np.int32)
KEPT = np.ones((2, KEYS), bool)
LENGTHS = np.array([1000, 2000], np.int32)
SLOPES = np.ones(HEADS, np.float32)
TABLE = np.zeros((HEADS, 64), np.float32)


def near(batch, head, q, k):
    return k <= q and q - k < 1000


def banded(batch, head, q, k):
    return (k <= q and q - k < 20) or (q // 64 == 1 and k < 3)


def first_keys(batch, head, q, k):
    return k <= q and (q - k <= 1000 or k < 4)


def remainders(batch, head, q, k):
    return (q + k) % 8 < 5


def documents(batch, head, q, k):
    return DOCUMENTS[q] == DOCUMENTS[k] and k <= q


def documents_of(batch, head, q, k):
    return DOCUMENTS_OF[batch, q] == DOCUMENTS_OF[batch, k]


def kept(batch, head, q, k):
    return KEPT[batch, k] and k <= q


def padded(batch, head, q, k):
    return k <= q and k < LENGTHS[batch]


def linear(s, batch, head, q, k):
    return s - SLOPES[head] * (q - k)


def capped(s, batch, head, q, k):
    return 30.0 * cute.math.tanh(s / 30.0)


def tabled(s, batch, head, q, k):
    return s + TABLE[head, (q - k) & 63]


MASKS = (near, banded, first_keys, remainders, documents, documents_of, kept, padded)
PLAIN = {
    "": {},
    "causal": {"causal": True},
    "window": {"window": (1000, 0)},
    "window on both sides": {"window": (500, 500)},
}
MASKED = {f"mask {f.__name__}": {"mask": f} for f in MASKS}
SCORED = {
    "soft cap": {"softcap": 30.0, "causal": True},
    "alibi": {"alibi": SLOPES, "causal": True},
    "bias": {"bias": np.zeros((1, HEADS, KEYS, KEYS), np.float32)},
    "sinks": {"sinks": SLOPES, "causal": True},
    **{
        f"score {f.__name__}{f', mask {m.__name__}' if m else ''}": {"score": f, "mask": m}
        for f in (linear, capped, tabled)
        for m in (None, near, documents)
    },
}
WIDTHS = ((32, 32), (64, 64), (96, 96), (128, 128), (192, 128), (192, 192), (256, 256))


def cases():
    """The calls, by name: the function, the heads' extents, the elements, and options."""
    found = {}
    for widths in WIDTHS:
        name = f"{widths[0]}" if widths[0] == widths[1] else "{} and {}".format(*widths)
        for kind, options in {**PLAIN, **MASKED, **SCORED}.items():
            found[f"forward {name} {kind}"] = "forward", widths, np.float16, options
        for kind, options in PLAIN.items():
            found[f"packed {name} {kind}"] = "packed", widths, np.float16, options
        found[f"forward {name} few keys"] = "few keys", widths, np.float16, {"causal": True}
        for kind, options in {**PLAIN, **MASKED, **SCORED}.items():
            if "sinks" not in kind:
                found[f"backward {name} {kind}"] = "backward", widths, np.float16, options
    for width in flash.NARROW_CONFIGS:
        for kind, options in {**PLAIN, **MASKED, **SCORED}.items():
            for logs in (False, True):
                name = f"8 bits {width} {kind}{' with logarithms' if logs else ''}"
                both = {**options, "return_lse": logs}
                found[name] = "forward", (width, width), ml_dtypes.float8_e4m3fn, both
    return found


def compiled(name, arch):
    """The kernels of a call: (name, registers, bytes stored and loaded by spills) of each."""
    what, (head, head_v), dtype, options = cases()[name]
    made = []

    def of(launch):
        def compile_it(*given):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SpillWarning)  # they are what is asked for
                made.append(cute.compile(launch, *given, options=f"--gpu-arch {arch}"))

        return compile_it

    for module in (flash, gradients):
        module.current_target = lambda: target_of(arch)
        module._launch = of(module._launch)
    flash._multiprocessors = lambda q: MULTIPROCESSORS
    keys = 700 if what == "few keys" else KEYS
    q, k, v = (np.zeros((2, keys, HEADS, width), dtype) for width in (head, head, head_v))
    if what == "packed":
        q, k, v = (x.reshape(2 * keys, HEADS, -1) for x in (q, k, v))
        starts = {"cu_seqlens_q": STARTS, "cu_seqlens_k": STARTS}
        attention(q, k, v, **starts, **options)
    elif what == "backward":
        lse = np.zeros((2, HEADS, keys), np.float32)
        attention_backward(v, q, k, v, v, lse, **options)
    else:
        attention(q, k, v, **options)
    resources = [x for one in made for x in one.resources.items()]
    return [(n, r.registers, r.spill_stores, r.spill_loads) for n, r in resources]


def tried(name, arch):
    """The result of `compiled`, or the error as text."""
    launches = flash._launch, gradients._launch, flash._multiprocessors
    try:
        return compiled(name, arch)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        flash._launch, gradients._launch, flash._multiprocessors = launches


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[""], help="texts, one of which a name has")
    parser.add_argument("--all", action="store_true", help="print kernels without spills too")
    given = parser.parse_args()
    names = [name for name in cases() if any(text in name for text in given.only)]
    print(f"{given.arch}, ptxas of CUDA {toolkit_version()}: registers, bytes stored and loaded")
    count = bad = 0
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        results = pool.map(tried, names, [given.arch] * len(names))
        for name, found in zip(names, results, strict=True):
            if isinstance(found, str):
                print(f"{name:44} {found[:200]}", flush=True)
                bad += 1
                continue
            for kernel, registers, stores, loads in found:
                count, bad = count + 1, bad + (stores + loads > 0)
                if given.all or stores or loads:
                    print(f"{name:44} {kernel:24} {registers:4} {stores:5} {loads:5}", flush=True)
    print(f"{count} kernels of {len(names)} calls, {bad} with spills or errors")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
