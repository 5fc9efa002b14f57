"""Two MLIR packages whose libraries share unique symbols are refused before they crash."""

import sys
import types

import pytest

from basedsl import DSLRuntimeError
from basedsl.mlir import libraries, load_bindings
from basedsl.mlir.clashes import loaded_packages, refuse_clash, unique_symbols

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF libraries")


@pytest.fixture(scope="module")
def library():
    """MLIR's C API library of the default bindings."""
    load_bindings()
    (folder,) = {path.parent for path in loaded_packages()["numba_cuda_mlir._mlir"]}
    return folder / "libMLIRPythonCAPI.so"


def test_unique_symbols_are_those_of_llvm(library):
    names = unique_symbols(library)
    assert len(names) > 1000
    assert all(b"4llvm" in name or b"4mlir" in name for name in names)


def test_a_file_that_is_no_library_has_none(tmp_path):
    (tmp_path / "a.so").write_text("INPUT(libz.so)")
    assert unique_symbols(tmp_path / "a.so") == frozenset()


def test_packages_that_share_symbols_are_refused(library):
    with pytest.raises(DSLRuntimeError) as info:
        refuse_clash("other_mlir", [library])
    assert info.value.message == (
        "the MLIR bindings 'other_mlir' and 'numba_cuda_mlir._mlir' cannot be in one process"
    )
    assert "static variables of LLVM under the same names" in str(info.value)


def test_packages_that_share_none_are_not(library, monkeypatch, tmp_path):
    refuse_clash("numba_cuda_mlir._mlir", [library])
    (tmp_path / "libMLIR.so").write_bytes(b"nothing")
    refuse_clash("other_mlir", [tmp_path / "libMLIR.so"])


def test_packages_that_others_loaded_count(library, monkeypatch):
    assert libraries("numba_cuda_mlir._mlir") == ()  # loaded
    theirs = types.ModuleType("theirs._mlir_libs")
    theirs.__path__ = [str(library.parent)]
    monkeypatch.setitem(sys.modules, "theirs._mlir_libs", theirs)
    monkeypatch.setitem(sys.modules, "theirs._mlir_libs._mlir", types.ModuleType("_mlir"))
    with pytest.raises(DSLRuntimeError, match="and 'theirs' cannot be in one process"):
        refuse_clash("numba_cuda_mlir._mlir", [library])
