"""`CuteCompiled`: the result of `cute.compile`, with the PTX and machine code of its kernels.

What shows them imports the lowering, which a program whose code is on the disk does without.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from basedsl import Compiled, DSLAttributeError, Lined, NativeTarget, Resources
from basedsl_cute.dsl.resources import KernelResources, read_resources


class CuteCompiled(Compiled):
    """A compiled function. The PTX, machine code and SASS of its kernels are None where it was
    compiled for the simulator.
    """

    def views(self) -> tuple[str, ...]:
        from basedsl_cute.lowering.ptx.ptxas import find_nvdisasm

        names = super().views()
        has_text = bool(self.__cubin__) and find_nvdisasm() is not None
        return (*names, "sass") if has_text and "sass" not in names else names

    def lined_view(self, name: str) -> Lined:
        from basedsl_cute.lowering.ptx.line_maps import of_ptx, of_sass

        if name == "ptx":
            return of_ptx(self.view(name))
        if name == "sass":
            return of_sass(self.view(name))
        return super().lined_view(name)

    def view(self, name: str, *, locations: bool = False) -> str:
        if name == "programs" and name in self.stages:
            from basedsl_cute.dsl.steps import simulator_source

            return simulator_source(self.stages.binary(name))
        if name == "sass" and "sass" not in self.stages and self.__cubin__:
            return self.__sass__ or ""
        return super().view(name, locations=locations)

    def hint_for_stage(self, name: str) -> str | None:
        if name in ("nvvm", "ptx", "cubin", "sass", "resources") and "ptx" not in self.stages:
            return 'compile for a GPU, which need not be there: options "--gpu-arch sm_90a"'
        return None

    @property
    def lowered_module(self) -> Any:
        """The module with kernels in llvm and nvvm; on the simulator, in what it translates."""
        name = "nvvm" if "nvvm" in self.stages else "launches"
        if name not in self.stages:
            return super().lowered_module
        names = self.stages.names
        before = [n for n in names[: names.index(name) + 1] if self.stages[n].kind == "mlir"]
        return self.stages[before[-1]].module()

    if not TYPE_CHECKING:  # a type checker reports attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            if name in ("mlir", "ptx", "cubin", "sass"):
                raise DSLAttributeError(
                    f"a compiled function has no '{name}'", hint=f"write compiled.__{name}__"
                )
            if name == "launch":
                raise DSLAttributeError(
                    "a compiled function is called, kernels are launched",
                    hint="write compiled(...)",
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _module(self) -> Any:
        """`ir_module`, in the spelling of programs for CuTe."""
        return self.ir_module

    @property
    def __ptx__(self) -> str | None:
        """The PTX of the kernels."""
        return self.stages.text("ptx") if "ptx" in self.stages else None

    @property
    def __cubin__(self) -> bytes | None:
        """The machine code of the kernels (a cubin file); also None if ptxas was not found."""
        return self.stages.binary("cubin") if "cubin" in self.stages else None

    @property
    def __sass__(self) -> str | None:
        """The machine code of the kernels as text. Raises DSLRuntimeError without nvdisasm."""
        if "sass" in self.stages:
            return self.stages.text("sass")
        from basedsl_cute.lowering.ptx.sass import disassemble

        cubin = self.__cubin__
        return None if cubin is None else disassemble(cubin, self.settings.nvdisasm_options)

    @property
    def resources(self) -> Resources[KernelResources]:
        """The resources of the kernels, by their names: registers, spills, shared and local memory,
        and `occupancy()`, which `print(compiled)` shows.
        """
        return read_resources(self.stages, self.function.language.target(self.settings))

    def instruction_histogram(self) -> Counter[str]:
        """Return how often each instruction occurs in the kernels' machine code, most frequent
        first; in the host's where there is no kernel, or no GPU to compile for. Raises
        DSLRuntimeError without nvdisasm.
        """
        if not self.__cubin__:
            return super().instruction_histogram()
        from basedsl_cute.lowering.ptx.sass import histogram

        return histogram(self.__sass__ or "")

    def export_to_c(
        self,
        file_path: str | Path,
        file_name: str | None = None,
        function_prefix: str | None = None,
        *,
        function_name: str | None = None,
        target: NativeTarget | None = None,
    ) -> tuple[Path, Path]:
        """Write an object file and a C header, by which C programs call this function.

        `file_path` is a folder and `file_name` the name of both files without suffix; without
        `file_name`, `file_path` is the path of the object file. The C names begin with
        `function_prefix` (or `function_name`). `target` is the host's machine, by default any of
        this architecture. Returns the paths of the object file and the header.
        See `basedsl_cute.aot`.
        """
        return super().export_to_c(
            file_path, file_name, function_prefix or function_name, target=target
        )
