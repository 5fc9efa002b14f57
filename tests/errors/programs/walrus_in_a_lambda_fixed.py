import basedsl_toy as toy


@toy.jit
def in_window(q, k):
    def sees(w):
        return (d := q - k) >= 0 and d < w

    return sees(7)


assert in_window(5, 3)
