"""The debugger of kernels on the simulator: `breakpoint()` stops a thread of a block at its line.

`point` is a place where a kernel may stop, with its variables; `values` reads them for a thread;
`debugger` decides where to stop; `terminal` asks what to do.
"""
