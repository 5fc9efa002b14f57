"""What the core finds through the entry point: cute's hooks, and nothing else."""

from basedsl.plugin import AdapterEntry, DSLEntry, hookimpl


def _load():
    from basedsl_cute.dsl.cute import CUTE

    return CUTE


@hookimpl
def basedsl_register_dsls():
    return [DSLEntry("cute", _load, "GPU kernels with CuTe's tensor algebra, and a CPU simulator")]


def _host_adapter():
    from basedsl_cute.conformance import HOST

    return HOST


def _kernel_adapter():
    from basedsl_cute.conformance import KERNEL

    return KERNEL


@hookimpl
def basedsl_conformance_adapters():
    return [
        AdapterEntry("cute-host", _host_adapter),
        AdapterEntry("cute-kernel", _kernel_adapter),
    ]
