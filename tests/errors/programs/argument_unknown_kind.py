import basedsl_toy as toy


class Settings:
    pass


@toy.jit
def double(n):
    return 2 * n


double(Settings())
