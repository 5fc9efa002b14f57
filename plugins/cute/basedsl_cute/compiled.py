"""What `cute.compile` returns: a compiled function with its kernels' code to look at."""

from __future__ import annotations

from basedsl.compiled import Compiled
from basedsl_cute.lowering.sass import disassemble


class CuteCompiled(Compiled):
    """A compiled function. Its kernels' PTX, machine code and SASS are None where none were made:
    on the simulator.
    """

    @property
    def __ptx__(self) -> str | None:
        """The PTX of the kernels."""
        return str(self.stages.data("ptx")) if "ptx" in self.stages else None

    @property
    def __cubin__(self) -> bytes | None:
        """The machine code of the kernels; None as well where there is no ptxas."""
        if "cubin" not in self.stages:
            return None
        data = self.stages.data("cubin")
        assert isinstance(data, bytes)
        return data

    @property
    def __sass__(self) -> str | None:
        """The machine code as text, by nvdisasm."""
        if "sass" in self.stages:
            return str(self.stages.data("sass"))
        cubin = self.__cubin__
        return None if cubin is None else disassemble(cubin, self.settings.nvdisasm_options)
