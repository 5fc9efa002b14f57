"""`experimental`: layers not offered; importing it is an error that says what there is."""

raise ModuleNotFoundError(
    f"No module named {__name__!r}: the experimental layers of CuTe's DSL are not offered; "
    "cute.arch has the instructions",
    name=__name__,
)
