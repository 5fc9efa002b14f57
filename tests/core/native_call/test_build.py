"""LLVM IR that is checked in is what the pinned compiler makes of the C files beside it."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from basedsl.native_call import build

ROOT = Path(__file__).parents[3]
C_FILES = [
    path
    for package in ("basedsl", "plugins/toy/basedsl_toy", "plugins/cute/basedsl_cute")
    for path in sorted((ROOT / package).rglob("*.c"))
]
(PINNED,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]["native"]

each_c_file = pytest.mark.parametrize("source", C_FILES, ids=lambda path: path.name)


def installed_compiler() -> str | None:
    try:
        return f"ziglang=={metadata.version('ziglang')}"
    except metadata.PackageNotFoundError:
        return None


def test_make_native_regenerates_every_file() -> None:
    (line,) = (
        line
        for line in (ROOT / "Makefile").read_text().splitlines()
        if line.startswith("NATIVE :=")
    )
    assert line.split()[2:] == [str(path.relative_to(ROOT)) for path in C_FILES]
    assert len(C_FILES) >= 2


@each_c_file
def test_the_ir_was_made_of_this_c_file(source: Path) -> None:
    first = source.with_suffix(".ll").read_text().splitlines()[0]
    assert first == build.first_line(source), "run make native"


@each_c_file
@pytest.mark.skipif(
    installed_compiler() != PINNED, reason=f"{PINNED} is not installed; make native installs it"
)
def test_the_ir_is_what_the_pinned_compiler_makes(source: Path) -> None:
    assert build.llvm_ir(source) == source.with_suffix(".ll").read_text(), "run make native"


def test_the_digest_covers_the_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.first_line(C_FILES[0])
    header = tmp_path / "object_layout.h"
    header.write_text(build.HEADER.read_text() + "\n")
    monkeypatch.setattr(build, "HEADER", header)
    assert build.first_line(C_FILES[0]) != before


def test_without_the_compiler_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "some.c"
    source.write_text("")
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    assert build.main([str(source)]) == 1
    assert "make native" in capsys.readouterr().err
    assert not source.with_suffix(".ll").exists()
