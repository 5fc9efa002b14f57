from dataclasses import dataclass

import basedsl_toy as toy


@dataclass
class State:
    count: int


@toy.jit
def advance(state):
    return State(state.count + 1)


assert advance(State(3)).count == 4
