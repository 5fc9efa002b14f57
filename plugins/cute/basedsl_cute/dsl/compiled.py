"""What `cute.compile` returns: a compiled function with its kernels' code to look at."""

from __future__ import annotations

from pathlib import Path

from basedsl import Compiled
from basedsl_cute.lowering.ptx.sass import disassemble


class CuteCompiled(Compiled):
    """A compiled function. Its kernels' PTX, machine code and SASS are None where none were made:
    on the simulator.
    """

    @property
    def __ptx__(self) -> str | None:
        """The PTX of the kernels."""
        return self.stages.text("ptx") if "ptx" in self.stages else None

    @property
    def __cubin__(self) -> bytes | None:
        """The machine code of the kernels; None as well where there is no ptxas."""
        return self.stages.binary("cubin") if "cubin" in self.stages else None

    @property
    def __sass__(self) -> str | None:
        """The machine code as text, by nvdisasm."""
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
        """Write `NAME.o` and `NAME.h`, with which C programs call this function; their paths.
        `file_path` is a folder, or the object's path if there is no `file_name`; `function_prefix`
        (or `function_name`) begins the names in the header. See `basedsl_cute.aot`.
        """
        from basedsl_cute import aot

        return aot.export_to_c(self, file_path, file_name, function_prefix or function_name)
