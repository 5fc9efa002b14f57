"""`Machine`: the declarations by which the simulator knows the machine whose kernels it runs.

class Tiny(Machine):
    name = "tiny"
    lanes = 64

    def rules(self, kernel: Any) -> RuleTable[Any, Any]:
        """Return the table with the rules of a kernel's operations, such as `sim.rules.COMMON`,
        those of MLIR's own dialects, or one that extends it. `kernel.walk()` has the operations.
        """
        raise NotImplementedError

    def resident_blocks(self, threads: int, shared: int) -> float:
        """Return how many blocks of `threads` threads and `shared` bytes of shared memory run at a
        time, by default all: a block that waits for one that has not started lets it start.
        """
        return math.inf
