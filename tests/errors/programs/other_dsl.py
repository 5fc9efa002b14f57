import basedsl_cute as cute
import basedsl_toy as toy


@cute.jit
def helper(n):
    return n + 1


@toy.jit
def entry(n: toy.Int64):
    return helper(n)


entry(3)
