"""The documentation names every folder of the packages, and names no file or function that is not
there.
"""

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

from basedsl import Language
from basedsl.plugin import CONFORMANCE_GROUP, DSL_GROUP
from basedsl.plugin.hookspecs import HOOKSPEC_GROUP

ROOT = Path(__file__).parents[2]
TOY, CUTE = (ROOT / f"plugins/{name}/basedsl_{name}" for name in ("toy", "cute"))
PACKAGES = [ROOT / "basedsl", TOY, CUTE]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "plugins").glob("*/README.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]
# A path is one of the checkout, or of a package; a name alone is one in any package.
BASES = [ROOT, *PACKAGES]

PATH = re.compile(r"(?=\w)([\w./-]+(?:\.(?:py|md|toml|c|ll)|/))(?::([\w.]+))?")
IN_COMMANDS = re.compile(r"(?<![\w./])(?:basedsl|bench|docs|examples|plugins|tests)/[\w./-]*\w")

page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def prose(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def quoted(text):
    return re.findall(r"`([^`\n]+)`", prose(text))


@functools.cache
def file_names():
    return {path.name for package in PACKAGES for path in package.rglob("*") if path.is_file()}


def found(path):
    return [base / path for base in BASES if (base / path).exists()]


def definitions(path):
    """Names that a module defines, and `Class.name` of its classes."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{one.name}" for one in node.body if hasattr(one, "name")}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
        names.add(getattr(node, "name", ""))
    return names


def test_the_map_has_every_folder():
    text = (ROOT / "docs" / "architecture.md").read_text()
    _, start, rest = text.partition("## The folders, in the order of a call\n")
    assert start
    core, toy, cute = re.split(r"^(?:toy is|cute,) ", rest.partition("\n## ")[0], flags=re.M)
    for package, part in zip(PACKAGES, (core, toy, cute), strict=True):
        folders = {
            f"{init.parent.relative_to(package)}/" for init in package.rglob("*/__init__.py")
        }
        assert folders <= set(quoted(part)) | {"./"}, package.name


@page
def test_paths_exist(page):
    text = page.read_text()
    for token in quoted(text):
        match = PATH.fullmatch(token)
        if match is None:
            continue
        path, name = match.groups()
        places = found(path)
        assert places or ("/" not in path and path in file_names()), f"there is no {token}"
        if name:
            assert any(name in definitions(place) for place in places), f"there is no {token}"
    for link in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"`[^`\n]*`", "", prose(text))):
        if not link.startswith("api/"):  # generated: `test_site` knows these
            assert (page.parent / link).exists(), link
    for block in re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for path in IN_COMMANDS.findall(block):
            assert (ROOT / path).exists(), path


@page
def test_dotted_names_exist(page):
    text = prose(page.read_text())
    for name in re.findall(r"`(basedsl(?:_\w+)?(?:\.\w+)+)(?:\(.*?\))?`", text):
        if not found(name) and name not in (DSL_GROUP, CONFORMANCE_GROUP, HOOKSPEC_GROUP):
            resolve(name)
    for name in re.findall(r"`Language\.(\w+)", text):
        assert hasattr(Language, name), name


def resolve(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        owner, _, attribute = name.rpartition(".")
        assert owner, name
        return getattr(resolve(owner), attribute)
