"""`compiled.export_to_c(...)`: a compiled function as `NAME.o` and `NAME.h`."""

from __future__ import annotations

import pickle
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from basedsl.errors import DSLCallError, DSLRuntimeError
from basedsl.objectstage import native
from basedsl.objectstage.entry_thunk import SUFFIX
from basedsl_cute.aot import interface, llvmir
from basedsl_cute.host.tensor_argument import TensorArgument

if TYPE_CHECKING:
    from basedsl.compiled import Compiled

# Any processor of the kind: the object may run elsewhere.
_BASELINES = {"x86_64": "x86-64", "AMD64": "x86-64"}


def export_to_c(
    compiled: Compiled,
    file_path: str | Path,
    file_name: str | None = None,
    function_prefix: str | None = None,
) -> tuple[Path, Path]:
    """Write the object file and the header; their paths.

    `file_path` is a folder, or the path of the object file if there is no `file_name`.
    `function_prefix` (by default the file's name) begins every name in the header. The object
    holds the kernels' machine code, needs libcuda only, and is loaded in C by
    `PREFIX_Kernel_Module_Load`, in Python by `cute.runtime.load_module`.

    Raises DSLRuntimeError for what was compiled for the simulator or without ptxas, DSLCallError
    for parameters that have no form in C.
    """
    folder = Path(file_path)
    if file_name is None:
        folder, file_name = folder.parent, folder.name.removesuffix(".o")
    prefix = function_prefix or file_name
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix):
        raise DSLCallError(f"function_prefix={prefix!r} is no name in C")
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
    results = compiled.results.formats
    if any(code not in interface.C_TYPES for code in results):
        raise DSLCallError("a result has no form in C", hint="return numbers of at most 64 bits")
    text = "\n".join(
        [
            llvmir.renamed_host(stages.text("optimised"), prefix),
            llvmir.support(
                prefix,
                image,
                pickle.loads(stages.binary("launches")),
                function.symbol + SUFFIX,
                _meta(compiled, names),
            ),
            llvmir.wrapper(prefix, parameters, results),
        ]
    )
    cpu = _BASELINES.get(platform.machine(), "generic")
    code = native.compile_llvmir(text, native.NativeTarget(cpu=cpu, features=""))
    folder.mkdir(parents=True, exist_ok=True)
    object_file, header_file = folder / f"{file_name}.o", folder / f"{file_name}.h"
    object_file.write_bytes(code)
    title = f"{function.fn.__qualname__}()"
    header_file.write_text(interface.header(prefix, title, parameters, results))
    return object_file, header_file


def _meta(compiled: Compiled, names: list[str]) -> bytes:
    """What loading the object into Python takes: its parameters, and how results are made."""
    results = compiled.results
    kept: dict[str, Any] = {
        "name": compiled.function.fn.__qualname__,
        "parameters": [
            (name, _on_gpu(argument))
            for name, argument in zip(names, compiled.arguments, strict=True)
            if argument.formats
        ],
        "results": (results.shape, results.leaves, results.types, results.places),
    }
    try:
        return pickle.dumps(kept)
    except Exception as error:
        raise DSLCallError(f"a parameter or result cannot be exported: {error}") from None


def _on_gpu(argument: Any) -> Any:
    """Exported code takes tensors where kernels reach them."""
    if isinstance(argument, TensorArgument) and argument.device == "cpu":
        return replace(argument, device="cuda")
    return argument
