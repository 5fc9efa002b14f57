"""Entry points found without parsing those of every distribution are the same."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from pathlib import Path

import pytest

from basedsl.plugin import GROUP, entry_points

TEXT = "[console_scripts]\nx = a:b\n\n[basedsl]\n{name} = {name}:plugin\n"


def described(points):
    return sorted((p.name, p.value, p.group, p.dist.name if p.dist else "") for p in points)


def distribution(folder: Path, name: str, version: str = "1.0", text: str | None = None) -> Path:
    made = folder / f"{name}-{version}.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if text is not None:
        (made / "entry_points.txt").write_text(text)
    return made


@pytest.mark.parametrize("group", [GROUP, "console_scripts", "pytest11", "no such group"])
def test_of_this_environment(group):
    assert described(entry_points.installed(group)) == described(
        importlib.metadata.entry_points(group=group)
    )


def test_the_first_distribution_of_a_name_counts(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    distribution(first, "one", "2.0", TEXT.format(name="new"))
    distribution(first, "two", "1.0")
    distribution(second, "one", "1.0", TEXT.format(name="old"))
    distribution(second, "two", "1.0", TEXT.format(name="shadowed"))
    distribution(second, "three", "1.0", TEXT.format(name="third"))
    monkeypatch.setattr(sys, "path", [str(first), str(tmp_path / "absent"), str(second)])
    found = entry_points.installed(GROUP)
    assert described(found) == described(importlib.metadata.entry_points(group=GROUP))
    assert sorted(p.name for p in found) == ["new", "third"]


def test_zip_files_are_read_too(tmp_path, monkeypatch):
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped-1.0.dist-info/METADATA", "Name: zipped\nVersion: 1.0\n")
        file.writestr("zipped-1.0.dist-info/entry_points.txt", TEXT.format(name="zipped"))
    monkeypatch.setattr(sys, "path", [str(archive)])
    assert [p.name for p in entry_points.installed(GROUP)] == ["zipped"]
