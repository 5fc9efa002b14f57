"""Host code of `@jit` functions: argument types, and kernel launches."""
