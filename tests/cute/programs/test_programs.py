"""Programs as users of CuTe's DSL write them. Each module's `run()` checks its own results."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("test_"))


def program(name):
    """The module, imported once under a name of its own."""
    known = f"cute_program_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, HERE / f"{name}.py")
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


@pytest.mark.parametrize("name", NAMES)
def test_program(target, name):
    program(name).run()
