import basedsl_toy as toy


class Counter:
    def __init__(self):
        self.count = 0


@toy.jit
def run(n: toy.Int64):
    counter = Counter()
    if n > 3:
        counter.extra = n
    return counter.count


run(5)
