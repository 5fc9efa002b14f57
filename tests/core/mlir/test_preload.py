"""Libraries mapped beside what runs: waited for where that must not be seen halfway."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from basedsl.mlir import preload

pytestmark = pytest.mark.skipif(os.name != "posix", reason="nothing is mapped early")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Mapping goes on until the event is set."""
    go = threading.Event()

    def dlopen(path: bytes, mode: int) -> None:
        go.wait(30)

    monkeypatch.setattr(preload.ctypes, "CDLL", lambda _: SimpleNamespace(dlopen=dlopen))
    return go


def test_it_can_be_waited_for(held: threading.Event, tmp_path: Path) -> None:
    before = threading.active_count()
    preload.begin([(tmp_path / "one.so", os.RTLD_NOW)])
    assert threading.active_count() == before + 1
    threading.Timer(0.05, held.set).start()
    preload.wait()
    assert held.is_set()
    assert not any(thread.name == "basedsl-preload" for thread in threading.enumerate())


def test_a_library_is_begun_once(held: threading.Event, tmp_path: Path) -> None:
    held.set()
    preload.begin([(tmp_path / "two.so", os.RTLD_NOW)])
    preload.wait()
    held.clear()
    preload.begin([(tmp_path / "two.so", os.RTLD_NOW)])
    preload.wait()  # does not wait for the event


DECORATE = """
import sys
from basedsl.mlir import preload
from basedsl_toy import TOY

print(bool(preload._begun), end=" ")

@TOY.jit
def f(x):
    return x + 1

print(bool(preload._begun), any("_mlir_libs" in name for name in sys.modules), end=" ")
if "call" in sys.argv:
    print(f(1), dict(TOY.counts), bool(preload._begun))
"""


def decorate(folder: Path, *arguments: str, **variables: str) -> str:
    program = folder / "program.py"
    program.write_text(DECORATE)
    cache = {"BASEDSL_CACHE": "1", "BASEDSL_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        env={**os.environ, **cache, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.strip()


def test_first_function_to_compile_starts_the_preload(tmp_path: Path) -> None:
    assert decorate(tmp_path) == "False True False"
    assert decorate(tmp_path, "call") == "False True False 2 {'compiled': 1} True"
    assert decorate(tmp_path) == "False False False"
    assert decorate(tmp_path, "call") == "False False False 2 {'loaded': 1} False"
    assert decorate(tmp_path, BASEDSL_CACHE="0") == "False True False"


def test_settings_that_are_wrong_are_reported_by_the_call(tmp_path: Path) -> None:
    assert decorate(tmp_path, BASEDSL_CACHE_SIZE="much") == "False False False"


BEGIN = """
import os, sys
from basedsl.mlir import preload
from basedsl.mlir import libraries
from basedsl.objectstage import native
preload.begin((*libraries(), *native.libraries()))
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_the_interpreter_ends_while_libraries_are_mapped() -> None:
    run("")
    run("raise SystemExit(0)")


def test_none_are_mapped_when_the_interpreter_ends() -> None:
    code = "import atexit, threading\n"
    code += "preload._begun.clear(); preload.wait()\n"
    code += "def last():\n    preload.begin(native.libraries()); print('ended')\n"
    code += "atexit.register(last)\n"
    assert run(code) == "ended\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_fork_compiles() -> None:
    code = """
child = os.fork()
if child == 0:
    from basedsl.mlir import load_bindings
    load_bindings().ir.Context()
    native.compile_llvmir("define i32 @f() { ret i32 7 }")
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    run(code)
