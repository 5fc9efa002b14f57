"""`CuteCompiled`: the result of `cute.compile`, with the PTX and machine code of its kernels."""

from __future__ import annotations

from pathlib import Path

from basedsl import Compiled
from basedsl_cute.lowering.ptx.sass import disassemble


class CuteCompiled(Compiled):
    """A compiled function. The PTX, machine code and SASS of its kernels are None where it was
    compiled for the simulator.
    """

    def views(self) -> tuple[str, ...]:
        names = super().views()
        return (*names, "sass") if self.__cubin__ and "sass" not in names else names

    def view(self, name: str, *, locations: bool = False) -> str:
        if name == "sass" and "sass" not in self.stages and self.__cubin__:
            return self.__sass__ or ""
        return super().view(name, locations=locations)

    def hint_for_stage(self, name: str) -> str | None:
        if name in ("nvvm", "ptx", "cubin", "sass", "resources") and "ptx" not in self.stages:
            return 'compile for a GPU, which need not be there: options "--gpu-arch sm_90a"'
        return None

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
        cubin = self.__cubin__
        return None if cubin is None else disassemble(cubin, self.settings.nvdisasm_options)

    def export_to_c(
        self,
        file_path: str | Path,
        file_name: str | None = None,
        function_prefix: str | None = None,
        *,
        function_name: str | None = None,
    ) -> tuple[Path, Path]:
        """Write an object file and a C header, by which C programs call this function.

        `file_path` is a folder and `file_name` the name of both files without suffix; without
        `file_name`, `file_path` is the path of the object file. The C names begin with
        `function_prefix` (or `function_name`). Returns the paths of the object file and the header.
        See `basedsl_cute.aot`.
        """
        from basedsl_cute import aot

        return aot.export_to_c(self, file_path, file_name, function_prefix or function_name)
