"""The package in which the MLIR bindings look for each dialect's Python module.

Modules are put into `sys.modules` under its name by `dialect.Dialect`; they are empty.
"""

__path__: list[str] = []
