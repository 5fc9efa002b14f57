import basedsl_toy as toy


@toy.jit
async def fetch(n: toy.Int64):
    return n


fetch(3)
