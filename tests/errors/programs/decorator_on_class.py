import basedsl_toy as toy


@toy.jit
class Model:
    pass
