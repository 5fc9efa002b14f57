import basedsl_toy as toy


class Model:
    @toy.jit
    def run(self, n: toy.Int64):
        return n


Model().run()
