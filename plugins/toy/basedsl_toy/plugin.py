"""What the core finds through the entry point: toy's hooks, and nothing else."""

from basedsl.plugin import DSLEntry, hookimpl


def _load():
    from basedsl_toy.dsl import TOY

    return TOY


@hookimpl
def basedsl_register_dsls():
    return [DSLEntry("toy", _load, "scalars and NumPy buffers, compiled for the CPU")]
