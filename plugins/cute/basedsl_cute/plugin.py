"""What the core finds through the entry point: cute's hooks, and nothing else."""

from basedsl.plugin import DSLEntry, hookimpl


def _load():
    from basedsl_cute.dsl import CUTE

    return CUTE


@hookimpl
def basedsl_register_dsls():
    return [DSLEntry("cute", _load, "GPU kernels with CuTe's tensor algebra, and a CPU simulator")]
