"""The stages of one compilation that the driver calls in turn, and what surrounds them.

`tracer` builds the module, `call_pipeline` compiles it, `loader` makes it callable; `call_guards`
tells what it depends on and has changed. `contexts` has the MLIR contexts, `cost` times and
prepares, `report` prints, saves and logs.
"""
