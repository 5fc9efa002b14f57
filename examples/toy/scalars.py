"""Scalars and control flow in toy: Collatz steps and Mandelbrot escape counts.

python examples/toy/scalars.py
"""

import numpy as np

import basedsl_toy as toy


@toy.jit
def collatz_steps(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@toy.jit
def mandelbrot(counts: toy.Buffer[toy.Int64, 2], limit):
    height, width = counts.shape
    for row in range(height):
        for col in range(width):
            x0, y0 = 3.0 * col / width - 2.0, 2.0 * row / height - 1.0
            x = y = 0.0
            count = 0
            while count < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                count += 1
            counts[row, col] = count


def main():
    print("Collatz steps of 27:", collatz_steps(27))
    counts = np.empty((24, 72), np.int64)
    mandelbrot(counts, 50)
    for row in counts:
        print("".join(" .:-=+*#%@"[min(n // 5, 9)] for n in row))


if __name__ == "__main__":
    main()
