"""Native calls: C code that checks guards, unpacks arguments and wraps results without Python.

`call.c` interprets tables; `entry` defines them and `variant` fills one for a compilation;
`unpackers` convert arguments; `conditions` are the kinds of checks that guards use; `object_layout`
confirms the memory layout of Python objects that `call.c` reads; `runtime` loads the machine code;
`build` compiles the C files to the LLVM IR that the package brings.
"""

from basedsl.native_call.entry import NativeEntryPoint
from basedsl.native_call.invoker import Invoker, NativeInvoker, native_invoker
from basedsl.native_call.object_layout import arrays_supported
from basedsl.native_call.runtime import compile_kept_llvmir, load_llvmir, native_function
from basedsl.native_call.unpackers import (
    Leaf,
    array_unpacker,
    dlpack_exchange_function,
    python_unpacker,
)

__all__ = [
    "Invoker",
    "Leaf",
    "NativeEntryPoint",
    "NativeInvoker",
    "array_unpacker",
    "arrays_supported",
    "compile_kept_llvmir",
    "dlpack_exchange_function",
    "load_llvmir",
    "native_function",
    "native_invoker",
    "python_unpacker",
]
