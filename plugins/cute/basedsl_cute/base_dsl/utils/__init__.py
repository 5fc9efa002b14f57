"""`base_dsl.utils`: has `logger`."""
