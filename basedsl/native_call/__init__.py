"""Native calls: conditions, arguments and results of a call in native code, from tables.

`call.c` is what runs; `entry` makes its tables; `variant` fills them for one compilation;
`unpackers` are how argument types take part; `conditions` are what guards may ask;
`object_layout` confirms what native code takes for granted; `runtime` loads it; `build` makes
the LLVM IR of the C files, which include `object_layout.h`.
"""

from basedsl.native_call.entry import NativeEntryPoint
from basedsl.native_call.invoker import Invoker, NativeInvoker, native_invoker
from basedsl.native_call.object_layout import arrays_supported
from basedsl.native_call.runtime import compile_kept_llvmir, load_llvmir
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
    "native_invoker",
    "python_unpacker",
]
