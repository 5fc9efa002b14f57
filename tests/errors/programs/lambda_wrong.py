import basedsl_toy as toy

bad = toy.jit(lambda n, x: n ^ x)
bad(3, 1.5)
