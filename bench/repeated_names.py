"""Lists the names that the library defines in several modules, of classes and functions.

    python bench/repeated_names.py [--least N]

A class has one meaning in the whole tree, so each class name with two homes is told; of functions
without a decorator, the names with at least N homes (4).
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("basedsl", "plugins/toy/basedsl_toy", "plugins/cute/basedsl_cute")
#: Programs of the conformance suite and templates are the text of users' programs.
LEFT_OUT = ("conformance/programs", "conformance/objects", "cli/new_files", "/_mlir/")


def definitions() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the homes of classes and of module-level functions, by name."""
    classes: dict[str, list[str]] = defaultdict(list)
    functions: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            home = str(path.relative_to(ROOT)).removeprefix("plugins/cute/")
            if any(part in home for part in LEFT_OUT):
                continue
            for node in top_level(ast.parse(path.read_text(encoding="utf-8")).body):
                if isinstance(node, ast.ClassDef):
                    classes[node.name].append(f"{home}:{node.lineno}")
                elif not node.decorator_list and "__" not in node.name:
                    functions[node.name].append(f"{home}:{node.lineno}")
    return classes, functions


def top_level(body: list[ast.stmt]) -> list[ast.ClassDef | ast.FunctionDef]:
    found: list[ast.ClassDef | ast.FunctionDef] = []
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.append(node)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--least", type=int, default=4, metavar="N", help="homes of a function (4)")
    given = parser.parse_args()
    classes, functions = definitions()
    for kind, found, least in (("class", classes, 2), ("def", functions, given.least)):
        rows = {name: homes for name, homes in found.items() if len(homes) >= least}
        for name, homes in sorted(rows.items(), key=lambda row: (-len(row[1]), row[0])):
            print(f"{len(homes):3} {kind} {name}: {', '.join(homes)}")
        print(f"{len(rows)} of {len(found)} names\n")


if __name__ == "__main__":
    main()
