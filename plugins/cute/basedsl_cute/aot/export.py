"""The export of functions that launch kernels: their machine code goes into the object file too."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from basedsl import DSLRuntimeError, Export
from basedsl_cute.aot import llvmir
from basedsl_cute.host.tensor_argument import TensorArgument


class KernelExport(Export):
    """The export of a @jit function for a GPU. The object needs libcuda only: C programs load its
    kernels by `PREFIX_Kernel_Module_Load`, Python by `cute.runtime.load_module`.
    """

    provides = (*Export.provides, *llvmir.PROVIDED)

    def code(self) -> str:
        """Return the host's LLVM IR. Raises DSLRuntimeError for a function compiled for the
        simulator or without ptxas.
        """
        stages = self.compiled.stages
        if "cubin" not in stages:
            raise DSLRuntimeError(
                "only machine code of a GPU can be exported, and this was compiled "
                + ("without ptxas" if "ptx" in stages else "for the simulator"),
                hint='compile with options="--gpu-arch sm_90a", on any machine with ptxas',
            )
        text: str = stages.text("optimised")
        return text

    def support(self) -> str:
        """Return LLVM IR of the kernels, their loading and their launch."""
        return llvmir.support(self.prefix, self.compiled.stages.binary("cubin"), self._launches)

    def interface(self) -> Any:
        """Return the C interface: functions that load the kernels, and one that calls the code."""
        prefix = self.prefix
        module = f"{prefix}_Kernel_Module_t"
        return replace(
            super().interface(),
            function=f"cute_dsl_{prefix}_wrapper",
            note="made by basedsl_cute. Link with -lcuda.",
            includes=("#include <cuda.h>",),
            declared=declared(prefix, module),
            module=module,
            memory="GPU" if self._launches.kernels else "host",
        )

    def exported_argument(self, argument: Any) -> Any:
        """Return the argument type with tensors on the GPU, where exported kernels need them."""
        if isinstance(argument, TensorArgument) and argument.device == "cpu":
            return replace(argument, device="cuda")
        return argument

    @property
    def _launches(self) -> Any:
        return pickle.loads(self.compiled.stages.binary("launches"))


def declared(prefix: str, module: str) -> Sequence[str]:
    """Return the lines of the header about the kernels."""
    return (
        "/* The kernels. All functions return 0 or a CUresult; errors count for one thread at a "
        "time. */",
        f"typedef struct {{ void *library; }} {module};",
        "",
        "/* For the device of the current context. */",
        f"int32_t {prefix}_Kernel_Module_Load({module} *module);",
        f"int32_t {prefix}_Kernel_Module_Unload({module} *module);",
        "",
    )
