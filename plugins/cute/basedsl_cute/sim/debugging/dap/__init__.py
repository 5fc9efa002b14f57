"""The debugger of kernels for editors, over the Debug Adapter Protocol (DAP).

    python -m basedsl_cute.sim.debugging.dap [--listen [HOST:]PORT] [PROGRAM [ARGS...]]

An editor starts the *adapter* (`adapter`), and talks to it on stdin and stdout or on a socket. At
`launch` the adapter starts the *debuggee* (`debuggee`), a Python of its own that runs the program,
so that the program's output, environment and end are apart from the protocol. The adapter answers
what concerns the process; it passes the other requests on, and the `session` in the debuggee
answers them. A session is a front end of the debugger as the terminal is one: it sets breakpoints
in the debugger's state, and waits where the debugger stops. All kernels of the program, but for
those of this package, get debug points (`host.debug_points.Watched`), so that a line of any of them
can stop; they come from no disk cache.

`messages` reads and writes the protocol, `source_lines` finds the lines of kernels in a file,
`hit_count` the conditions on how often a breakpoint is reached, `shown_values` makes variables of
values. The protocol: https://microsoft.github.io/debug-adapter-protocol/specification
"""
