import basedsl_toy as toy


class Model:
    def __init__(self, scale):
        self.scale = scale

    @toy.jit
    def run(self, n: toy.Int64):
        return self.step(n)

    def step(self, n):
        return self.scale ^ n


Model(1.5).run(3)
