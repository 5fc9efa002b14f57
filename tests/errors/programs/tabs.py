import basedsl_toy as toy


@toy.jit
def combine(n: toy.Int64, x: toy.Float64):
	if n > 0:
		n = n ^ x
	return n


combine(3, 1.5)
