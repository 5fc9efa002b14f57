import basedsl_toy as toy


@toy.jit
def length(k):
    words = ["a", "bc"]
    lengths = [len(word) for word in words]
    return lengths[k]


assert length(1) == 2
