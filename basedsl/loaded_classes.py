"""Classes of standard modules that need not be imported to know their objects."""

from __future__ import annotations

import sys


def loaded_classes(*names: str) -> tuple[type, ...]:
    """Return the classes with these names ("module.Class") whose modules are loaded: there are no
    objects of the others.
    """
    found = (
        getattr(sys.modules.get(module), cls, None)
        for module, _, cls in (name.rpartition(".") for name in names)
    )
    return tuple(cls for cls in found if isinstance(cls, type))
