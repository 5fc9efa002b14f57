"""A hook of MkDocs (`mkdocs.yml`) adds pages that are made from the code.

The reference is made from docstrings, the page of messages from the programs of the tests. Links to
files outside of `docs/` become links to the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/basedsl/basedsl/blob/main"
MODULES = (
    "cute", "cute.arch", "cute.math", "cute.nvgpu", "cute.nvgpu.warp", "cute.nvgpu.warpgroup",
    "cute.nvgpu.cpasync", "cute.nvgpu.tcgen05", "cute.pipeline", "cute.utils", "cute.runtime",
    "cute.testing", "cute.torch", "cute.jax", "cute.cuda",
)  # fmt: skip


def pages() -> dict[str, str]:
    """The generated pages, by their path in the site."""
    made = {f"api/{name}.md": reference(name) for name in MODULES}
    made["api/messages.md"] = messages()
    return made


# The reference ------------------------------------------------------------------------------------


def reference(module: str) -> str:
    """The page of a public module: each of its names with its parameters and its docstring."""
    found = importlib.import_module(module.replace("cute", "basedsl_cute", 1))
    names = getattr(found, "__all__", None) or [n for n in dir(found) if not n.startswith("_")]
    parts = [f"# {module}\n", _doc(found), "\n"]
    for name in sorted(set(names), key=str.lower):
        value = getattr(found, name, None)
        if value is None or inspect.ismodule(value):
            continue
        parts.append(f"## `{name}`\n")
        parts.append(f"```py\n{module}.{name}{_signature(value)}\n```\n")
        parts.append(_doc(value) + "\n")
        if inspect.isclass(value):
            parts += _members(value)
    return "\n".join(parts)


def _members(cls: type) -> list[str]:
    parts = []
    for name, member in vars(cls).items():
        if name.startswith("_") or not getattr(member, "__doc__", None):
            continue
        if callable(member) or isinstance(member, property | classmethod | staticmethod):
            text = " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split())
            parts.append(f"- **`{name}`**: {text}")
    return [*parts, ""] if parts else []


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    kept = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in signature.parameters.values()
        if one.name not in ("loc", "ip", "self")
    ]
    empty = inspect.Signature.empty
    return str(signature.replace(parameters=kept, return_annotation=empty))


def _doc(value: Any) -> str:
    """A docstring as Markdown: its examples become blocks of code."""
    text = inspect.getdoc(value) or ""
    blocks = []
    for block in text.split("\n\n"):
        fenced = block.lstrip().startswith((">>>", "%", '"', "cute.")) and "\n" in block
        fenced = fenced or block.lstrip().startswith(">>>") or block.startswith("    ")
        blocks.append(f"```pycon\n{inspect.cleandoc(block)}\n```" if fenced else block)
    return "\n\n".join(blocks)


# Errors by message --------------------------------------------------------------------------------


def messages() -> str:
    """The page of wrong programs with the message of each, for the site's search."""
    folder = ROOT / "tests" / "errors" / "programs"
    parts = [
        "# Errors by message\n",
        "Search for the words of a message. Each program below is a test: it gives its message,",
        "and the program under it, where there is one, runs.\n",
    ]
    for path in sorted(folder.glob("*.txt")):
        name = path.stem
        headline = path.read_text().split("\n", 1)[0]
        title = re.sub(r"^\w+: ", "", headline).replace("`", "'")
        parts.append(f"## {title}\n")
        parts.append(f'```py title="{name}.py"\n{_code(folder / f"{name}.py")}\n```\n')
        parts.append(f"```text\n{path.read_text().strip()}\n```\n")
        fixed = folder / f"{name}_fixed.py"
        if fixed.exists():
            parts.append(f"What works:\n\n```py\n{_code(fixed)}\n```\n")
    return "\n".join(parts)


def _code(path: Path) -> str:
    return path.read_text().strip()


# MkDocs -------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave the folder to the repository."""
    depth = page.file.src_uri.count("/")
    outside = "../" * (depth + 1)
    return re.sub(rf"\]\({re.escape(outside)}(?!\.)", f"]({REPOSITORY}/", markdown)
