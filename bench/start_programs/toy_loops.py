"""Nested loops with branches over buffers; `starts.py` runs it."""

import json
from time import perf_counter

import numpy as np

import basedsl_toy as toy


@toy.jit
def escape(c: toy.Buffer[toy.Int64, 2], limit):
    height, width = c.shape
    for row in range(height):
        for col in range(width):
            x0, y0 = 3.0 * col / width - 2.0, 2.0 * row / height - 1.0
            x = y = 0.0
            n = 0
            while n < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                n += 1
            c[row, col] = n


@toy.jit
def smooth(a: toy.Buffer, b: toy.Buffer, rounds):
    n = len(a)
    for r in range(rounds):
        for i in range(1, n - 1):
            left, mid, right = a[i - 1], a[i], a[i + 1]
            value = 0.25 * left + 0.5 * mid + 0.25 * right
            if value > 1.0:
                value = 1.0
            elif value < -1.0:
                value = -1.0
            b[i] = value
        for i in range(1, n - 1):
            a[i] = b[i] if r % 2 == 0 else 0.5 * (a[i] + b[i])


@toy.jit
def both(c: toy.Buffer[toy.Int64, 2], a: toy.Buffer, b: toy.Buffer, limit):
    escape(c, limit)
    smooth(a, b, limit)
    total = 0
    for row in range(c.shape[0]):
        for col in range(c.shape[1]):
            total += c[row, col]
    return total


c, a, b = np.empty((4, 4), np.int64), np.arange(8.0), np.zeros(8)
start = perf_counter()
both(c, a, b, 5)
print(json.dumps([(perf_counter() - start) * 1e3, dict(toy.TOY.counts)]))
