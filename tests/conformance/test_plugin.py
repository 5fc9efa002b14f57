"""The installed pytest plugin, run as a DSL's author runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    return subprocess.run(
        [*command, "--pyargs", "basedsl.conformance"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_runs_from_an_empty_folder(tmp_path: Path) -> None:
    done = run(
        tmp_path, "--basedsl-dsl", "toy", "--basedsl-fuzz", "5", "-k", "exits-guard or random"
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout and "skipped" not in done.stdout


def test_an_unknown_dsl_names_those_there_are(tmp_path: Path) -> None:
    done = run(tmp_path, "--basedsl-dsl", "nothing")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no such declaration" in done.stdout + done.stderr
    assert "toy" in done.stdout + done.stderr


def test_other_runs_import_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_nothing(request):\n"
        "    assert not {'basedsl', 'numpy', 'mlir'} & set(sys.modules)\n"
        "    assert request.config.getoption('--basedsl-fuzz') == 300\n"
    )
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "basedsl_pytest", str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_what_a_dsl_does_not_support_must_fail_cleanly() -> None:
    from basedsl.conformance import Conformance
    from basedsl.conformance.compare import check
    from basedsl.conformance.programs import all_cases
    from basedsl_toy.dsl import TOY

    cases = dict(all_cases())
    claims = Conformance("toy", TOY, unsupported={"tree-arguments": "numbers only"})
    with pytest.raises(AssertionError, match="tree-arguments: no error"):
        check(claims, cases["calls-dataclass_argument"])
