"""Names the pre-stage makes up, as far as messages must translate them for users."""

RETURN_VALUE = "__retval__"
