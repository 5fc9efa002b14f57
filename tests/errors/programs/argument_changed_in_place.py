from dataclasses import dataclass

import basedsl_toy as toy


@dataclass
class State:
    count: int


@toy.jit
def advance(state):
    state.count += 1


advance(State(3))
