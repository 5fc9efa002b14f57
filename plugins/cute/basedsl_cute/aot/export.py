"""`compiled.export_to_c(...)`: export of a compiled function as `NAME.o` and `NAME.h`."""

from __future__ import annotations

import pickle
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from basedsl import ENTRY_SUFFIX, DSLCallError, DSLRuntimeError, NativeTarget, compile_llvmir
from basedsl_cute.aot import interface, llvmir
from basedsl_cute.aot.metadata import sealed, write_metadata
from basedsl_cute.host.tensor_argument import TensorArgument

if TYPE_CHECKING:
    from basedsl import Compiled

# The baseline processor of an architecture, since the object may run on another machine.
_BASELINES = {"x86_64": "x86-64", "AMD64": "x86-64"}


def export_to_c(
    compiled: Compiled,
    file_path: str | Path,
    file_name: str | None = None,
    function_prefix: str | None = None,
) -> tuple[Path, Path]:
    """Write an object file and a C header of a compiled function; returns their paths.

    `compiled` is the result of `cute.compile`. `file_path` is a folder, or the path of the object
    file if there is no `file_name`. `function_prefix` (by default the file's name) begins every
    name in the header. The object contains the kernels' machine code and needs libcuda only. C
    programs load it by `PREFIX_Kernel_Module_Load`, Python by `cute.runtime.load_module`.

    Raises DSLRuntimeError for a function compiled for the simulator or without ptxas, DSLCallError
    for parameters or results that have no C type.
    """
    folder = Path(file_path)
    if file_name is None:
        folder, file_name = folder.parent, folder.name.removesuffix(".o")
    prefix = function_prefix or file_name
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix):
        raise DSLCallError(f"function_prefix={prefix!r} is no C identifier")
    stages = compiled.stages
    if "cubin" not in stages:
        raise DSLRuntimeError(
            "only machine code of a GPU can be exported, and this was compiled "
            + ("without ptxas" if "ptx" in stages else "for the simulator"),
            hint='compile with options="--gpu-arch sm_90a", on any machine with ptxas',
        )
    image = stages.binary("cubin")
    function = compiled.function
    names = [parameter.name for parameter in function.signature.parameters]
    parameters = interface.parameters_of(names, compiled.arguments)
    results = compiled.results.storage
    if any(code not in interface.C_TYPES for code in results):
        raise DSLCallError("a result has no C type", hint="return numbers of at most 64 bits")
    text = "\n".join(
        [
            llvmir.renamed_host(stages.text("optimised"), prefix),
            llvmir.support(
                prefix,
                image,
                pickle.loads(stages.binary("launches")),
                function.symbol + ENTRY_SUFFIX,
                _meta(compiled, names),
            ),
            llvmir.wrapper(prefix, parameters, results),
        ]
    )
    cpu = _BASELINES.get(platform.machine(), "generic")
    code = compile_llvmir(text, NativeTarget(cpu=cpu, features=""))
    folder.mkdir(parents=True, exist_ok=True)
    object_file, header_file = folder / f"{file_name}.o", folder / f"{file_name}.h"
    object_file.write_bytes(sealed(code))
    title = f"{function.fn.__qualname__}()"
    memory = "GPU" if pickle.loads(stages.binary("launches")).kernels else "host"
    header_file.write_text(interface.header(prefix, title, parameters, results, memory))
    return object_file, header_file


def _meta(compiled: Compiled, names: list[str]) -> bytes:
    """The metadata for loading the object into Python: its parameters and results."""
    results = compiled.results
    kept: dict[str, Any] = {
        "name": compiled.function.fn.__qualname__,
        "parameters": [
            (name, _on_gpu(argument))
            for name, argument in zip(names, compiled.arguments, strict=True)
            if argument.storage
        ],
        "results": (results.shape, results.leaves, results.types, results.places),
    }
    try:
        return write_metadata(kept)
    except TypeError as error:
        raise DSLCallError(f"a parameter or result cannot be exported: {error}") from None


def _on_gpu(argument: Any) -> Any:
    """The argument type with tensors on the GPU, where exported kernels need them."""
    if isinstance(argument, TensorArgument) and argument.device == "cpu":
        return replace(argument, device="cuda")
    return argument
