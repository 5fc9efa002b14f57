import basedsl_toy as toy


@toy.jit
def total(n: toy.Int64):
    for i in range(n):
        total_so_far += i
    return total_so_far


total(3)
