"""NumPy buffers in toy: a dot product and a 1-D stencil.

python examples/toy/buffers.py
"""

import numpy as np

import basedsl_toy as toy


@toy.jit
def dot(a: toy.Buffer, b: toy.Buffer):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@toy.jit
def smooth(source: toy.Buffer, target: toy.Buffer):
    """Each item becomes the mean of itself and its neighbours; the ends stay."""
    n = len(source)
    for i in range(n):
        if 0 < i < n - 1:
            target[i] = (source[i - 1] + source[i] + source[i + 1]) / 3.0
        else:
            target[i] = source[i]


def main():
    a, b = np.arange(5.0), np.ones(5)
    print("dot:", dot(a, b))
    target = np.empty_like(a)
    smooth(np.array([0.0, 3.0, 0.0, 3.0, 0.0]), target)
    print("smooth:", target)


if __name__ == "__main__":
    main()
