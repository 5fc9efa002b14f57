"""Wheels of the three distributions in a new environment, run from an empty directory."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELLO = """
import basedsl_cute as cute
from basedsl.plugin import dsl_names

@cute.kernel
def kernel():
    if cute.arch.thread_idx()[0] == 0:
        cute.printf("Hello world\\n")

@cute.jit
def host():
    kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))

host()
cute.synchronize()
print(*dsl_names())
"""
WITHOUT_CUTE = """
import basedsl_toy as toy
from basedsl.plugin import dsl_names

@toy.jit
def double(n):
    return 2 * n

print(double(21), *dsl_names())
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with the three wheels; other packages come from the running one."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels = folder / "dist"
    for project in (ROOT, ROOT / "plugins" / "toy", ROOT / "plugins" / "cute"):
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
            "--wheel-dir", wheels, copy_of(project, folder))  # fmt: skip
    assert len(list(wheels.glob("*.whl"))) == 3
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    site = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
        "--target", site, *wheels.glob("*.whl"))  # fmt: skip
    # Everything but this project comes from the running environment.
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("basedsl", "__editable__", "easy-install", "_virtualenv")):
            if not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    return folder, python, site


def copy_of(project, folder):
    """Sources to build from, so that the build leaves nothing in the checkout."""
    import shutil

    target = folder / f"source-{project.name}"
    skip = shutil.ignore_patterns(
        ".*",
        "*.egg-info",
        "build",
        "dist",
        "__pycache__",
        *(["plugins"] if project == ROOT else []),
    )
    shutil.copytree(project, target, ignore=skip)
    return target


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["basedsl", "basedsl_toy", "basedsl_cute"])
def test_a_wheel_says_what_it_is(environment, name):
    folder, _, _ = environment
    (path,) = (folder / "dist").glob(f"{name}-*.whl")
    wheel = zipfile.Path(path)
    info = wheel / f"{path.name.split('-py3')[0]}.dist-info"
    text = (info / "licenses" / "LICENSE").read_text()
    assert text == (ROOT / "LICENSE").read_text()
    assert "Apache License\n" in text and "END OF TERMS AND CONDITIONS" in text
    assert (wheel / name / "py.typed").exists()

    about = metadata.PathDistribution(info).metadata.json
    assert about["license_expression"] == "Apache-2.0"
    assert about["author"] == "The basedsl authors"
    assert len(about["summary"]) > 20 and "```python" in about["description"]
    assert about["description_content_type"] == "text/markdown"
    labels = [url.split(", ")[0] for url in about["project_url"]]
    assert labels == ["Homepage", "Source", "Issues", "Changelog"]
    assert about["keywords"] and "Typing :: Typed" in about["classifier"]
    version = "Programming Language :: Python :: {}.{}".format(*sys.version_info)
    assert version in about["classifier"]


def test_wheels_carry_native_code_its_source_and_data(environment):
    folder, _, _ = environment
    for name, source in (("basedsl", ROOT), ("basedsl_cute", ROOT / "plugins" / "cute")):
        (path,) = (folder / "dist").glob(f"{name}-*.whl")
        carried = set(zipfile.ZipFile(path).namelist())
        for suffix in ("c", "h", "ll", "json", "npz"):
            for file in (source / name).rglob(f"*.{suffix}"):
                assert str(file.relative_to(source)) in carried


def test_hello_from_an_empty_directory(environment, tmp_path):
    _, python, site = environment
    script = tmp_path / "hello.py"
    script.write_text(HELLO)
    env = {**os.environ, "CUTE_DSL_ARCH": "sim", "PYTHONPATH": "", "HOME": str(tmp_path)}
    assert run(python, script, cwd=tmp_path, env=env) == "Hello world\ncute toy\n"
    where = run(python, "-c", "import basedsl_cute; print(basedsl_cute.__file__)", env=env)
    assert where.startswith(str(site))


def test_removing_a_plugin_removes_its_dsl_only(environment, tmp_path):
    import shutil

    _, python, site = environment
    aside = tmp_path / "aside"
    aside.mkdir()
    for part in list(site.glob("basedsl_cute*")):
        shutil.move(part, aside / part.name)
    try:
        script = tmp_path / "double.py"
        script.write_text(WITHOUT_CUTE)
        env = {**os.environ, "PYTHONPATH": "", "HOME": str(tmp_path)}
        assert run(python, script, cwd=tmp_path, env=env).split() == ["42", "toy"]
    finally:
        for part in aside.iterdir():
            shutil.move(part, site / part.name)
