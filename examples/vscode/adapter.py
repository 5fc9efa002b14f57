"""The debug adapter, as VS Code starts it: with the first `python3` of its PATH, which must have
basedsl-cute.
"""

import runpy

runpy.run_module("basedsl_cute.sim.debugging.dap", run_name="__main__")
