"""Modules that are taken for libraries: their functions are not followed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from basedsl.digest import is_library

LIST = "other.py,sha256=x,1\nheld_package/__init__.py,sha256=x,1\nheld_package/part.py,sha256=x,1\n"


def test_packages_that_pip_put_into_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install --target FOLDER` leaves lists of its files there, without the user's own."""
    for name in ("held_package/__init__.py", "held_package/part.py", "held_own.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    made = tmp_path / "held_package-1.0.dist-info"
    made.mkdir()
    (made / "RECORD").write_text(LIST)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("held_package.part", "held_own"):
        importlib.import_module(name)
    assert is_library("held_package") and is_library("held_package.part")
    assert not is_library("held_own")
    for name in ("held_package", "held_package.part", "held_own"):
        monkeypatch.delitem(sys.modules, name)
