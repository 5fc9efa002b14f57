import basedsl_toy as toy


@toy.jit
def in_window(q, k):
    sees = lambda w: (d := q - k) >= 0 and d < w  # noqa: E731
    return sees(7)


in_window(5, 3)
