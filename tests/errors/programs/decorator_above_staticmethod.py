import basedsl_toy as toy


class Model:
    @toy.jit
    @staticmethod
    def run(n: toy.Int64):
        return n


Model.run(3)
