"""Native calls: conditions, arguments and results of a call in native code, from tables.

`call.c` is what runs; `entry` makes its tables; `variant` fills them for one compilation;
`unpackers` are how argument types take part; `conditions` are what guards may ask;
`object_layout` confirms what native code takes for granted; `runtime` loads it; `build` makes
the LLVM IR of the C files, which include `object_layout.h`.
"""
