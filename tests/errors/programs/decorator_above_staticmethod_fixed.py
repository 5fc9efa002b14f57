import basedsl_toy as toy


class Model:
    @staticmethod
    @toy.jit
    def run(n: toy.Int64):
        return n


assert Model.run(3) == 3
