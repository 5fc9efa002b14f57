"""`basedsl new NAME`: the folder of a distribution with a DSL of its own, which works at once."""

from __future__ import annotations

import argparse
import importlib.util
import keyword
import re
import sys
from pathlib import Path
from string import Template

from basedsl.errors import DSLError
from basedsl.plugin import Command

FOLDER = Path(__file__).parent / "new_files"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the DSL's name, such as wave: lower-case letters and digits")
    parser.add_argument(
        "--folder", type=Path, help="where to write it; by default a new folder of this name"
    )


def _run(parsed: argparse.Namespace) -> int:
    folder = parsed.folder or Path(parsed.name)
    for path in write(parsed.name, folder):
        print(path)
    print(f"\nin {folder}: pip install -e . && pytest")
    return 0


def write(name: str, folder: Path) -> list[Path]:
    """Write the distribution of a DSL called `name` into `folder`; returns the files. Raises
    DSLError for a name that is no name of a package, and for a folder that has files.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise DSLError(
            f"{name!r} is no name of a DSL",
            hint="lower-case letters, digits and _, and no word of Python: it is a package too",
        )
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise DSLError(
            f"there is a package {name!r} already, and a program would get one of the two",
            hint=f"another name, such as {name}_dsl",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DSLError(f"{folder} is there already", hint="name another folder with --folder")
    words = {"name": name, "NAME": name.upper(), "Name": name.title().replace("_", "")}
    written = []
    for template in sorted(path for path in FOLDER.rglob("*.txt")):
        relative = template.relative_to(FOLDER).with_suffix("")
        path = folder / str(relative).replace("NAME", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(template.read_text(encoding="utf-8")).substitute(words))
        written.append(path)
    return written


NEW_COMMAND = Command("new", "write the distribution of a new DSL", _configure, _run)
