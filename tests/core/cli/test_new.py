"""`basedsl new` writes a distribution that installs and passes its own tests."""

import os
import subprocess
import sys

import pytest

from basedsl import DSLError
from basedsl.cli import main
from basedsl.cli.new import write


def run(*command, cwd, **variables):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def path_with(folder):
    return os.pathsep.join(filter(None, [str(folder), *sys.path]))


def test_the_dsl_works_at_once(tmp_path, capsys):
    folder = tmp_path / "ripple"
    assert main(["new", "ripple", "--folder", str(folder)]) == 0
    assert "pip install -e . && pytest" in capsys.readouterr().out
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert names == [
        "README.md",
        "pyproject.toml",
        "ripple/__init__.py",
        "ripple/conformance.py",
        "ripple/language.py",
        "tests/test_ripple.py",
    ]
    assert not any("$" in path.read_text() for path in folder.rglob("*.*") if path.is_file())
    (tmp_path / "program.py").write_text(
        "import numpy as np, ripple\n"
        "@ripple.jit\n"
        "def saturate(a, low, high):\n"
        "    for i in range(len(a)):\n"
        "        a[i] = ripple.clamp(a[i], low, high)\n"
        "a = np.array([-3.0, 0.5, 7.0])\n"
        "saturate(a, -1, 1)\n"
        "print(a.tolist())\n"
    )
    said = run("program.py", cwd=tmp_path, PYTHONPATH=path_with(folder))
    assert said == "[-1.0, 0.5, 1.0]\n"


@pytest.mark.slow
def test_it_installs_and_passes(tmp_path):
    folder, site = tmp_path / "ripple", tmp_path / "site"
    write("ripple", folder)
    run(
        *"-m pip install --quiet --no-deps --target".split(),
        *(str(site), str(folder)),
        cwd=tmp_path,
    )
    path = path_with(site)
    assert "ripple" in run("-m", "basedsl", "list", cwd=tmp_path, PYTHONPATH=path)
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder, PYTHONPATH=path)
    said = run(
        *"-m pytest -q -p no:cacheprovider --pyargs basedsl.conformance".split(),
        *"--basedsl-dsl ripple --basedsl-fuzz 10".split(),
        cwd=tmp_path,
        PYTHONPATH=path,
    )
    assert "left out, buffers: arrays are of floats" in said


@pytest.mark.parametrize("name", ["Ripple", "my-dsl", "for", "1st", ""])
def test_a_name_that_is_none(name, tmp_path):
    with pytest.raises(DSLError, match="is no name of a DSL"):
        write(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["json", "numpy"])
def test_a_name_of_another_package(name, tmp_path):
    with pytest.raises(DSLError, match=f"there is a package '{name}' already") as caught:
        write(name, tmp_path / "new")
    assert caught.value.hint == f"another name, such as {name}_dsl"
    assert not (tmp_path / "new").exists()


def test_a_folder_with_files_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(DSLError, match="is there already"):
        write("ripple", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
