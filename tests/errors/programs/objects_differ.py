import basedsl_toy as toy


class Box:
    def __init__(self, value):
        self.value = value


class Crate:
    def __init__(self, value):
        self.value = value


@toy.jit
def pack(n: toy.Int64):
    if n > 3:
        holder = Box(n)
    else:
        holder = Crate(n)
    return holder.value


pack(5)
