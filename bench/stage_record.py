"""Records what compilations make, for `same_code.py`: a pytest plugin, and a runner of programs.

    pytest -p stage_record ...        # every process writes one file when it ends
    python stage_record.py PROGRAM    # the same of one program, for sm_90a too

The folder is that of the environment variable SAME_CODE_RECORD. Only `basedsl.plugin` and names
that every user has are imported, so that it works in checkouts whose modules lie elsewhere.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib.util
import json
import os
import re
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

from basedsl.plugin import hookimpl, plugin_manager

FOLDER = "SAME_CODE_RECORD"
TARGET, GPU = "CUTE_DSL_ARCH", "sm_90a"

# Where a line of Python lies, and what an assertion says, are in texts and may change: the messages
# are kept apart, from the traced module. MLIR counts their constants in all of a process.
_LINE = re.compile(r"[\w.+/-]+\.py:\d+")
_ASSERT = re.compile(r'(cf\.assert [^"\n]*)"((?:[^"\\]|\\.)*)"')
_CONSTANT = re.compile(
    r"((?:llvm\.mlir\.global [^@\n]*|^)@(?:assert_msg|basedsl_assertion)\w*(?: = |\()).*", re.M
)
_NUMBERED = re.compile(r"@assert_msg_\d+")
_LENGTH = re.compile(
    r"(getelementptr %\w+\[0\] : \(!llvm\.ptr\) -> !llvm\.ptr, !llvm\.array)<\d+ x i8>"
)


def normal(text: str) -> str:
    """The text without messages of assertions and lines of Python."""
    text = _ASSERT.sub(r'\1"..."', _LINE.sub("FILE.py:0", text))
    return _LENGTH.sub(r"\1<...>", _NUMBERED.sub("@assert_msg", _CONSTANT.sub(r"\1...", text)))


class Recorder:
    """Keeps the texts of each compilation, by role: `traced`, the module that tracing built;
    `messages`, those of its assertions; `lowered`, each module that something else was made from;
    `ptx`; and other texts by the name of their stage.
    """

    def __init__(self) -> None:
        self.until_ptx = False
        self._made: set[tuple[str, str, str, str]] = set()
        self._texts: dict[str, str] = {}
        self._first: dict[str, str] = {}
        self._lock = threading.Lock()
        self._latest = threading.local()

    @hookimpl
    def basedsl_stage_output(self, dsl: str, function: str, stage: str, output: Any) -> None:
        # The first stage that a DSL shows is the input of its pipelines.
        is_first = stage == self._first.setdefault(dsl, stage)
        if output.kind == "mlir":
            self._latest.module = None if is_first else output
            if is_first:
                text = output.text()
                self._add(dsl, function, "traced", text)
                messages = sorted({found[2] for found in _ASSERT.finditer(text)})
                self._add(dsl, function, "messages", "\n".join(messages))
            return
        module = getattr(self._latest, "module", None)
        if module is not None:
            self._latest.module = None
            self._add(dsl, function, "lowered", module.text())
        if isinstance(output.data, str):
            is_ptx = output.suffix == ".ptx"
            self._add(dsl, function, "ptx" if is_ptx else stage, output.data)
            if is_ptx and self.until_ptx:
                raise Enough

    def _add(self, dsl: str, function: str, role: str, text: str) -> None:
        text = normal(text)
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        with self._lock:
            self._made.add((dsl, function, role, digest))
            self._texts[digest] = text

    def write(self, folder: Path) -> None:
        """One file of this process."""
        with self._lock:
            if self._made:
                with gzip.open(folder / f"{os.getpid()}.json.gz", "wt", compresslevel=1) as file:
                    json.dump({"made": sorted(self._made), "texts": self._texts}, file)


class Enough(BaseException):
    """Ends a compilation whose machine code nobody runs."""


RECORDER = Recorder()


# In pytest ---------------------------------------------------------------------------------------


def pytest_configure(config: Any) -> None:
    plugin_manager().register(RECORDER, "stage-record")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what only runs on a GPU, and the long tests on the simulator."""
    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def is_left_out(item: Any) -> bool:
    if item.get_closest_marker("gpu") or item.get_closest_marker("slow"):
        return True
    return bool({"sim", "target"} & set(item.fixturenames))


def pytest_unconfigure(config: Any) -> None:
    RECORDER.write(Path(os.environ[FOLDER]))


# Of a program ------------------------------------------------------------------------------------


class ForGPU:
    """Compiles for a GPU, up to PTX, whatever a program compiles or calls: as well as for the
    simulator, which runs it. Calls with arguments of the same types are compiled once.
    """

    def __init__(self) -> None:
        self.done: set[Any] = set()
        self.refused = 0
        self._inside = threading.local()

    def install(self) -> None:
        import basedsl_cute as cute

        @cute.jit
        def some() -> None: ...

        self._compile = cute.compile
        function, compiling = type(some), type(cute.compile)
        function.__call__ = _Around(function.__call__, self._before)  # type: ignore[method-assign]
        call = compiling.__call__
        compiling.__call__ = _Around(call, self._before_compile)  # type: ignore[method-assign]

    @contextlib.contextmanager
    def _before(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Around a call. Calls in it are traced with it."""
        if getattr(self._inside, "now", False):
            yield
            return
        self._inside.now = True
        try:
            named = [(name, described(value)) for name, value in kwargs.items()]
            key = (id(function), *map(described, args), *named)
            if key not in self.done:
                self.done.add(key)
                self._for_gpu(function, args, kwargs)
            yield
        finally:
            self._inside.now = False

    def _before_compile(self, compiling: Any, args: Any, kwargs: Any) -> Any:
        function, *rest = args
        kept = {name: value for name, value in kwargs.items() if name != "options"}
        return self._before(function, tuple(rest), kept)

    def _for_gpu(self, function: Any, args: Any, kwargs: Any) -> None:
        before = os.environ.get(TARGET)
        os.environ[TARGET], RECORDER.until_ptx = GPU, True
        try:
            self._compile(function, *args, **kwargs)
        except Enough:
            pass
        except Exception:  # what only the simulator takes
            self.refused += 1
        finally:
            RECORDER.until_ptx = False
            if before is None:
                del os.environ[TARGET]
            else:
                os.environ[TARGET] = before


class _Around:
    """The attribute `__call__` of a class with something done around each call. It may be a slot
    that each object sets.
    """

    def __init__(self, original: Any, around: Any) -> None:
        self._original, self._around = original, around

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        call = self._original.__get__(instance, owner)

        def around(*args: Any, **kwargs: Any) -> Any:
            with self._around(instance, args, kwargs):
                return call(*args, **kwargs)

        return around

    def __set__(self, instance: Any, value: Any) -> None:
        self._original.__set__(instance, value)


def described(value: Any) -> Any:
    """Equal for arguments of the same type."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        stride = getattr(value, "strides", None) or getattr(value, "stride", None)
        return type(value), str(value.shape), str(value.dtype), str(stride)
    text = repr(value)
    return (type(value), id(value)) if " at 0x" in text else (type(value), text)


def run(program: Path) -> None:
    """Run a program as a user does; one that defines `run` has its work there."""
    sys.path.insert(0, str(program.parent))
    sys.argv = [str(program)]
    if "\ndef run(" not in program.read_text():
        runpy.run_path(str(program), run_name="__main__")
        return
    spec = importlib.util.spec_from_file_location(program.stem, program)
    assert spec is not None and spec.loader is not None
    sys.modules[program.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.run()


def main() -> None:
    program = Path(sys.argv[1]).resolve()
    del sys.path[0]  # this folder has modules called as some of Python's
    plugin_manager().register(RECORDER, "stage-record")
    on_gpu = ForGPU()
    if "basedsl_cute" in program.read_text():
        on_gpu.install()
    try:
        run(program)
    finally:
        RECORDER.write(Path(os.environ[FOLDER]))
    print(json.dumps({"for a GPU": len(on_gpu.done), "refused": on_gpu.refused}))


if __name__ == "__main__":
    main()
