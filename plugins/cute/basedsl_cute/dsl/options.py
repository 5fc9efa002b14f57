"""The options of cute, on top of the core's; environment variables begin with CUTE_DSL_."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from basedsl import Options, kept, option

# Names of artifacts in programs for CuTe -> names of the pipeline's stages.
_STAGES = {"ir-debug": "ir"}

# Flags of ptxas that say what the option `arch` says.
_PTXAS_ARCH = ("-arch", "--gpu-name")


# Words for the level of a check, as variables that were true or false may have them.
_LEVELS = {"0": "off", "false": "off", "no": "off", "1": "error", "true": "error", "yes": "error"}


def _check_option(what: str) -> str:
    """An option of a check of the simulator."""
    return option(
        "error",
        f"what the simulator does about {what}",
        affects_output=True,
        choices=("off", "warn", "error", *_LEVELS),
    )


@dataclass(frozen=True, kw_only=True)
class CuteOptions(Options, prefix="CUTE_DSL_"):
    """The options that `cute.compile(..., options="...")` and environment variables set."""

    SPELLINGS: ClassVar[Mapping[str, tuple[str, str | None]]] = {
        "generate-line-info": ("lineinfo", None),
        "gpu-arch": ("arch", None),
        "keep-ptx": ("keep", "ptx"),
        "keep-cubin": ("keep", "cubin"),
        "keep-sass": ("keep", "sass"),
    }
    VARIABLES: ClassVar[Mapping[str, tuple[str, Callable[[str], str]]]] = {
        "KEEP_PTX": ("keep", kept("ptx")),
        "KEEP_CUBIN": ("keep", kept("cubin")),
        "KEEP_SASS": ("keep", kept("sass")),
    }
    OTHER_PREFIXES: ClassVar[tuple[str, ...]] = ("CUTLASS_",)
    TEXT_VARIABLE: ClassVar[str] = "COMPILER_OPT"

    arch: str = option(
        "",
        "target: sm_90a, ..., or sim; by default this machine's GPU, else sim",
        affects_output=True,
    )
    opt_level: int = option(
        3,
        "optimisation level of LLVM and ptxas; host code is compiled with 2 at most",
        affects_output=True,
        choices=(0, 1, 2, 3),
    )
    enable_assertions: bool = option(
        False,
        "keep assertions in kernels on the GPU (the simulator always has them)",
        affects_output=True,
        debug=True,
    )
    lineinfo: bool = option(
        False,
        "emit line tables, by which profilers map machine code to Python lines",
        affects_output=True,
        debug=True,
    )
    contract: bool = option(
        True,
        "round a * b + c in kernels once (FMA), as CUDA does; without, twice, as Python does",
        affects_output=True,
    )
    ptxas_options: str = option("", "further options for ptxas", affects_output=True)
    nvdisasm_options: str = option(
        "-g -c", "arguments of nvdisasm when machine code is shown as text", affects_output=False
    )
    enable_tvm_ffi: bool = option(
        False,
        "accepted without effect: compiled functions take arrays directly in any case",
        affects_output=False,
    )
    link_libraries: tuple[str, ...] = option(
        (),
        "files that kernels are linked with: bitcode (.bc), PTX, cubins, objects, archives (.a)",
        affects_output=True,
    )
    trace_buffer: int = option(
        0,
        "address of the buffer for events of kernels; `cute.record_events` sets it",
        affects_output=True,
        least=0,
    )
    log_autotune: bool = option(
        False, "print the times that tuning measures, and its choice", affects_output=False
    )
    check_races: str = _check_option("accesses to memory that nothing orders")
    check_uninitialized: str = _check_option("values that nobody has written")
    check_division: str = _check_option("quotients by zero that are used")
    check_coordinates: str = _check_option("coordinates of tensors beyond their extents")

    max_spins: int = option(
        10_000,
        "turns that a polling loop may take on the simulator while nothing else happens",
        affects_output=True,
        least=1,
    )
    max_steps: int = option(
        1_000_000,
        "turns that a `while` loop may take on the simulator, before it counts as endless",
        affects_output=True,
        least=1,
    )

    check_linear_index: bool = option(
        False,
        "a single number as the index of a tensor with several modes is an error",
        affects_output=True,
    )

    schedule_seed: int = option(
        0,
        "seed of the order in which the simulator runs warps and blocks; 0 is their own order",
        affects_output=True,
        least=0,
    )

    def __post_init__(self) -> None:
        for name in ("check_races", "check_uninitialized", "check_division", "check_coordinates"):
            level = getattr(self, name)
            object.__setattr__(self, name, _LEVELS.get(level, level))
        object.__setattr__(self, "keep", tuple(_STAGES.get(name, name) for name in self.keep))
        super().__post_init__()

    def contradiction(self) -> tuple[str, str | None] | None:
        for word in shlex.split(self.ptxas_options):
            if word.partition("=")[0] in _PTXAS_ARCH:
                return (
                    f"ptxas_options has {word}, which contradicts the option arch",
                    "set arch alone: kernels are lowered for it too",
                )
        return super().contradiction()
