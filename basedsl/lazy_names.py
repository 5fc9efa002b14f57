"""Packages that import a public name when a program first uses it.

Such a package imports its names below `if TYPE_CHECKING:`, which type checkers read. So does
`imported_later`, which makes the package's `__getattr__` of these statements: each name's module is
stated once. Of a statement `from module import *` it takes the names of the module's `__all__`.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: The module of a name, and the name there.
Home = tuple[str, str]


def imported_later(
    package: str,
    otherwise: Callable[[str], Any] | None = None,
    *,
    imports: str | Path | None = None,
) -> Callable[[str], Any]:
    """Return the `__getattr__` of `package`, a module's name: it imports the names that the package
    imports for type checkers.

    With `imports`, the path of a Python file, the names are those that this file imports. The
    function `otherwise` answers for other names; without it they raise AttributeError, as names do
    that a module does not have. An imported name is kept in the package.
    """

    def find(name: str) -> Any:
        module = sys.modules[package]
        known = homes(str(imports or module.__file__))
        if name == "__all__":
            return vars(module).setdefault(name, sorted(one for one in known if one[0] != "_"))
        found = None if name.startswith("__") else known.get(name)
        if found is None:
            if otherwise is not None and not name.startswith("__"):
                return otherwise(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        home, inner = found
        if home == package:  # a module of the package
            value: Any = importlib.import_module(f"{package}.{inner}")
        else:
            value = getattr(importlib.import_module(home), inner)
        return vars(module).setdefault(name, value)

    return find


@functools.cache
def homes(file: str) -> dict[str, Home]:
    """Return the home of each name that a file imports: below `if TYPE_CHECKING:`, or at the top
    level of a file without such a block.
    """
    import ast  # here, since most processes ask for names of one package alone

    top = ast.parse(Path(file).read_text(encoding="utf-8")).body
    blocks = [one.body for one in top if isinstance(one, ast.If) and _is_for_types(one.test)]
    found: dict[str, Home] = {}
    for statement in blocks[0] if blocks else top:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                if alias.name == "*":
                    names = _all_of(statement.module)
                    found |= {name: (statement.module, name) for name in names}
                else:
                    found[alias.asname or alias.name] = (statement.module, alias.name)
    return found


def _all_of(module: str) -> list[str]:
    """Return the `__all__` of a module of a package, a list of literals; the module is not
    imported, which may be under way.
    """
    import ast

    package, _, inner = module.partition(".")
    path = Path(sys.modules[package].__path__[0], *inner.split(".")).with_suffix(".py")
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(statement.value)
            return names
    raise ImportError(f"{module} has no __all__", name=module)


def _is_for_types(test: Any) -> bool:
    return getattr(test, "id", None) == "TYPE_CHECKING"
