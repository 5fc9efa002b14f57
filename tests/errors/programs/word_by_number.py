import basedsl_toy as toy


@toy.jit
def length(k):
    words = ["a", "bc"]
    return len(words[k])


length(1)
