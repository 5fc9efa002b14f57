import basedsl_toy as toy


@toy.jit
def fetch(n: toy.Int64):
    async def inner():
        return n

    return inner


fetch(3)
