"""What the core finds through the entry point: toy's hooks, and nothing else."""

from basedsl.plugin import AdapterEntry, DSLEntry, hookimpl


def _load():
    from basedsl_toy.dsl import TOY

    return TOY


@hookimpl
def basedsl_register_dsls():
    return [DSLEntry("toy", _load, "scalars and NumPy buffers, compiled for the CPU")]


def _load_adapter():
    from basedsl_toy.conformance import ADAPTER

    return ADAPTER


@hookimpl
def basedsl_conformance_adapters():
    return [AdapterEntry("toy", _load_adapter)]
