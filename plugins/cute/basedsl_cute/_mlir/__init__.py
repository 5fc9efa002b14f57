"""`_mlir`: MLIR's internals, not offered; importing it is an error that says what there is."""

raise ModuleNotFoundError(
    f"No module named {__name__!r}: MLIR's internals are not offered; inline PTX is "
    "cute.arch.inline_ptx(template, inputs, output_types)",
    name=__name__,
)
