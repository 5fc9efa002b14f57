import basedsl_toy as toy


class Counter:
    def __init__(self):
        self.count = 0
        self.extra = 0


@toy.jit
def run(n: toy.Int64):
    counter = Counter()
    if n > 3:
        counter.extra = n
    return counter.count


assert run(5) == 0
