"""The flags that exported functions are linked with."""

import platform
import subprocess
import sys

import pytest

from basedsl_cute.aot import aot_config

HOST = f"linux-{platform.machine()}"


@pytest.fixture
def library(tmp_path, monkeypatch):
    (tmp_path / aot_config.LIBRARY).touch()
    monkeypatch.setenv("LIBRARY_PATH", f":{tmp_path}")
    return tmp_path


def test_flags(library, capsys):
    given = ["--libs", "--ldflags", "--libdir", "--target", HOST, "--with-tvm-ffi"]
    assert aot_config.main(given) == 0
    assert capsys.readouterr().out.splitlines() == [str(library), f"-L{library}", "-lcuda"]


def test_libraries_need_no_folder(monkeypatch, capsys):
    monkeypatch.setattr(aot_config, "LIBRARY", "libnosuch.so")
    assert aot_config.main(["--libs"]) == 0
    assert capsys.readouterr().out == "-lcuda\n"
    assert aot_config.main(["--ldflags"]) == 1
    assert "there is no libnosuch.so to link with" in capsys.readouterr().err


def test_another_host_is_an_error(library, capsys):
    assert aot_config.main(["--libs", "--target", "linux-riscv"]) == 1
    assert f"objects are exported for the host, {HOST}" in capsys.readouterr().err


def test_it_is_a_command(library):
    command = [sys.executable, "-m", "basedsl_cute.aot.aot_config"]
    assert subprocess.run([*command, "--libs"], capture_output=True).stdout == b"-lcuda\n"
    assert subprocess.run(command, capture_output=True).returncode == 2
