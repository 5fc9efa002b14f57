"""`experimental`: layers not offered; importing it is an error that says what there is."""

raise ModuleNotFoundError(
    f"No module named {__name__!r}: experimental layers are not offered, see cute.arch",
    name=__name__,
)
