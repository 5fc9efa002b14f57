"""Packages that import names when they are used: from what type checkers read."""

import sys
from pathlib import Path

import pytest

from basedsl.lazy_names import homes, imported_later

PACKAGE = """
from typing import TYPE_CHECKING
from basedsl.lazy_names import imported_later

if TYPE_CHECKING:
    from lazy_package import inner
    from lazy_package.inner import VALUE, other as renamed
else:
    __getattr__ = imported_later(__name__{otherwise})
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def package(otherwise=""):
        folder = tmp_path / "lazy_package"
        folder.mkdir()
        (folder / "__init__.py").write_text(PACKAGE.format(otherwise=otherwise))
        (folder / "inner.py").write_text("VALUE = [1]\nother = 'the other'\n")
        import lazy_package

        return lazy_package

    yield package
    for name in ("lazy_package", "lazy_package.inner", "lazy_package.starred"):
        sys.modules.pop(name, None)


def test_a_name_is_imported_when_it_is_used(package):
    lazy = package()
    assert "lazy_package.inner" not in sys.modules
    assert lazy.renamed == "the other"
    assert "lazy_package.inner" in sys.modules
    assert lazy.VALUE is lazy.inner.VALUE
    assert vars(lazy)["VALUE"] is lazy.VALUE, "kept, so that it is looked up once"


def test_a_module_of_the_package_is_imported_by_name(package):
    assert package().inner.VALUE == [1]


def test_an_unknown_name_is_an_attribute_error(package):
    lazy = package()
    with pytest.raises(AttributeError, match="module 'lazy_package' has no attribute 'value'"):
        _ = lazy.value
    assert not hasattr(lazy, "__wrapped__")


def test_others_are_asked_for_other_names(package):
    lazy = package(otherwise=", str.upper")
    assert (lazy.something, lazy.VALUE) == ("SOMETHING", [1])


def test_all_names_of_a_module(package):
    lazy = package()
    folder = Path(lazy.__path__[0])
    (folder / "starred.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from basedsl.lazy_names import imported_later\n"
        "if TYPE_CHECKING:\n"
        "    from lazy_package.inner import *\n"
        "    from math import tau, pi as _hidden\n"
        "else:\n"
        "    __getattr__ = imported_later(__name__)\n"
    )
    (folder / "inner.py").write_text("VALUE, other = [1], 2\n__all__ = ['VALUE']\n")
    from lazy_package import starred

    assert "lazy_package.inner" not in sys.modules
    names = {}
    exec("from lazy_package.starred import *", names)
    assert names.keys() - {"__builtins__"} == {"VALUE", "tau"}
    assert starred.VALUE is lazy.inner.VALUE
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = starred.other
    assert starred._hidden == pytest.approx(3.1415926)


def test_a_star_of_a_module_without_a_list(package):
    path = Path(package().__path__[0], "starred.py")
    path.write_text("from lazy_package.inner import *\n")
    with pytest.raises(ImportError, match=r"lazy_package.inner has no __all__"):
        homes(str(path))


def test_the_names_of_another_file(tmp_path):
    path = tmp_path / "names.py"
    path.write_text("import os\nfrom math import pi, tau as circle\n")
    assert homes(str(path)) == {"pi": ("math", "pi"), "circle": ("math", "tau")}
    find = imported_later(__name__, imports=path)
    assert find("circle") == pytest.approx(6.2831853)
    assert globals().pop("circle") == find("circle")
    globals().pop("circle")
