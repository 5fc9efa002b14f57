"""A folder of its own for each test, and programs that other processes run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from basedsl.native_call import runtime

THE_DSL = """
from basedsl import DSL, Language

class Plain(Language):
    name = "plain"

DSL_ = DSL(Plain())
"""

PROGRAM = """
import json, sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from basedsl import Constexpr
from plain_dsl import DSL_

@dataclass(frozen=True)
class Settings:
    scale: int = {scale}
    names: list = field(default_factory=list, metadata={{"unit": "none"}})

SETTINGS = Settings()

class Pair(NamedTuple):
    a: Any
    b: Any

def helper(x):
    return x * SETTINGS.scale

@DSL_.jit
def f(x, n: Constexpr = 3):
    total = 0
    for i in range(x):
        total += helper(i) + n
    return {result}

if __name__ == "__main__":
    values = [f(10), f(4), f(10)]
    traced = "basedsl.prestage.rewriter" in sys.modules
    bindings = any("_mlir_libs" in name for name in sys.modules)
    print(json.dumps([values, dict(DSL_.counts), traced, bindings]))
"""


class Program:
    """A file with a DSL function, run in a process of its own."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.path = folder / "program.py"
        self.cache = cache
        (folder / "plain_dsl.py").write_text(THE_DSL)
        self.write()

    def write(self, scale: int = 2, result: str = "total") -> None:
        self.path.write_text(PROGRAM.format(scale=scale, result=result))

    def command(self) -> list[str]:
        return [sys.executable, "-W", "error::SyntaxWarning", str(self.path)]

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "BASEDSL_CACHE": "1", "BASEDSL_CACHE_DIR": str(self.cache), **more}

    def run(self, **more: str) -> Any:
        done = subprocess.run(
            self.command(),
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.errors = done.stderr
        return json.loads(done.stdout)

    def files(self) -> list[Path]:
        return sorted(self.cache.iterdir())


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, tmp_path / "cache")


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process keeps its code in this folder: that of functions, nothing of the library."""
    runtime.runtime()
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
