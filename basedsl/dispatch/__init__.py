"""Calls in nanoseconds: guards, arguments and results in native code, from tables.

`call.c` is what runs; `entry` makes its tables; `unpack` is how argument types take part; `reads`
are the guards' rows; `layout` checks what native code takes for granted; `runtime` loads it.
"""
