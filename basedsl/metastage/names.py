"""Names that the pre-stage makes up and that messages must translate for users."""

RETURN_VALUE = "__retval__"
