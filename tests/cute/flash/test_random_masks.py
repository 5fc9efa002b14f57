"""Random masks: their bounds over tiles, and spans where there are any, against Python."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.ops.flash.bounds import truth_of

sys.path.insert(0, str(Path(__file__).parent))

from test_bounds import tiles
from test_spans import KEYS, QUERIES, of_arrays, solve

MASKS = 60  # of a seed


class Expressions:
    """Random expressions of a mask's place (b, h, q, k) and two captured arrays, n and w."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, depth):
        """A number of operations nested so deep."""
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.25:
            some = self.random.randint(-20, 70), self.random.randint(0, 9)
            return pick(["q", "k", "k", "q", "h", "b", *map(str, some)])
        a, b = self.number(depth - 1), self.number(depth - 1)
        usual = [f"({a} + {b})", f"({a} - {b})"] * 4
        made = pick(
            [
                *usual,
                f"({a} * {pick([-1, 2, 3, -2])})",
                f"({a} // {pick([2, 4, 8, 3, 7, 16, 5])})",
                f"({a} % {pick([4, 8, 3])})",
                f"({a} >> {pick([1, 3])})",
                f"abs({a})",
                f"max({a}, {b})",
                f"min({a}, {b})",
                f"(-{a})",
                f"n[({a}) % 40]",
                f"n[{pick('qk')} // 2]",
                "w[0]",
                None,
            ]
        )
        return made or f"({a} if {self.condition(depth - 1)} else {b})"

    def condition(self, depth):
        """A condition of operations nested so deep."""
        pick = self.random.choice
        if depth <= 0 or self.random.random() < 0.4:
            a, b, c = (self.number(self.random.randint(0, 2)) for _ in range(3))
            sign = pick(["<", "<=", "<=", ">", ">=", "==", "!="])
            return pick([f"({a} {sign} {b})"] * 6 + [f"({a} {sign} {b} <= {c})"])
        a, b, c = (self.condition(depth - 1) for _ in range(3))
        joined = [f"({a} {sign} {b})" for sign in ("and", "and", "or", "&", "|", "^")]
        return pick([*joined, f"(not {a})", f"({a} if {c} else {b})"])


def makers(seed, folder):
    """Functions of two arrays that make a mask, and their texts, in a module of their own."""
    expressions = Expressions(seed)
    texts = [expressions.condition(expressions.random.randint(1, 3)) for _ in range(MASKS)]
    lines = [f"def make_{i}(n, w): return lambda b, h, q, k: {x}" for i, x in enumerate(texts)]
    path = folder / f"masks_{seed}.py"
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [(text, getattr(module, f"make_{i}")) for i, text in enumerate(texts)]


@cute.kernel
def bounded(x: cute.Tensor, n: cute.Tensor, w: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    if i < x.shape[0]:
        head = x[i, 0] * 0 + 1
        ranges = (head, head), (x[i, 0], x[i, 1]), (x[i, 2], x[i, 3])
        arrays = [(n, None), (w, None)]
        truth = truth_of(cute.jit(make(n, w)), cute.Int32(0), *ranges, arrays=arrays)
        out[i, 0] = cute.Int32(truth.true)
        out[i, 1] = cute.Int32(truth.false)


@cute.jit
def bounds(x: cute.Tensor, n: cute.Tensor, w: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    bounded(x, n, w, out, make).launch(grid=(1, 1, 1), block=(128, 1, 1))


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2, 3))])
def test_bounds_and_spans_of_random_masks(seed, tmp_path):
    arrays, x, solved = of_arrays(), tiles(), 0
    for text, make in makers(seed, tmp_path):
        mask = make(*(array.tolist() for array in arrays))
        shown = np.array(
            [[[bool(mask(0, h, q, k)) for k in range(KEYS)] for q in range(64)] for h in range(2)]
        )
        found = np.full((len(x), 2), -1, np.int32)
        bounds(x, *arrays, found, make)
        for (q0, q1, k0, k1), (true, false) in zip(x.tolist(), found.tolist(), strict=True):
            tile = shown[1, q0 : q1 + 1, k0 : k1 + 1]
            assert true >= tile.any() and false >= (not tile.all()), (text, q0, k0)
        spans = np.zeros((QUERIES, 2, 2), np.int64)
        solve(*arrays, spans, make)
        if (spans[..., 0] != -1).any():
            solved += 1
            low, high = spans.transpose(2, 1, 0)[..., None]
            inside = (low <= np.arange(KEYS)) & (np.arange(KEYS) < high)
            np.testing.assert_array_equal(inside, shown[:, :QUERIES], text)
    assert solved > MASKS // 4
