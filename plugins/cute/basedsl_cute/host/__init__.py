"""Host code of `@jit` functions: the types of its arguments, and the launches that it traces."""
