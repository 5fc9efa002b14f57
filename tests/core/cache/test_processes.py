"""Other processes: the second runs what the first compiled, whatever happens to the files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

FIRST = [[120, 24, 120], {"compiled": 1}, True, True]
LATER = [[120, 24, 120], {"loaded": 1}, False, False]


def test_the_second_process_neither_traces_nor_compiles(program: Any) -> None:
    assert program.run() == FIRST
    assert program.run() == LATER


def test_what_the_function_reads_is_part_of_the_key(program: Any) -> None:
    program.run()
    program.write(scale=3)
    assert program.run() == [[165, 30, 165], {"compiled": 1}, True, True]
    program.write(scale=2)
    assert program.run() == LATER
    program.write(result="total + 1")
    assert program.run()[:2] == [[121, 25, 121], {"compiled": 1}]


def test_options_that_change_the_code_are_part_of_the_key(program: Any) -> None:
    program.run()
    assert program.run(BASEDSL_OPT_LEVEL="1")[1] == {"compiled": 1}
    assert program.run(BASEDSL_LOG_LEVEL="error") == LATER


def test_the_option_turns_it_off(program: Any) -> None:
    assert program.run(BASEDSL_CACHE="0") == FIRST
    assert not program.cache.exists()


def test_results_that_are_not_plain_are_compiled_each_time(program: Any) -> None:
    program.write(result="Pair(total, 1)")
    for _ in range(2):
        assert program.run()[:2] == [[[120, 1], [24, 1], [120, 1]], {"compiled": 1}]


@pytest.mark.parametrize("damage", ["truncated", "emptied", "a bit", "rubbish", "a folder"])
def test_damaged_files_count_as_absent(program: Any, damage: str) -> None:
    program.run()
    for file in program.files():
        raw = bytearray(file.read_bytes())
        if damage == "truncated":
            file.write_bytes(raw[: len(raw) // 2])
        elif damage == "emptied":
            file.write_bytes(b"")
        elif damage == "a bit":
            raw[len(raw) // 2] ^= 1
            file.write_bytes(raw)
        elif damage == "rubbish":
            file.write_bytes(os.urandom(1000))
        else:
            file.unlink()
            file.mkdir()
    assert program.run() == FIRST
    if damage != "a folder":
        assert program.run() == LATER


def test_a_whole_file_that_is_no_entry_counts_as_absent(program: Any) -> None:
    from basedsl.cache import CacheStore

    program.run()
    store = CacheStore(program.cache, 10**9)
    for one in store.entries():
        store.write(one.key, b"not json\nat all")
    assert program.run() == FIRST
    assert program.run() == LATER


def test_sixteen_processes_at_once(program: Any) -> None:
    environment = program.environment()
    running = [
        subprocess.Popen(
            program.command(),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(16)
    ]
    for one in running:
        out, err = one.communicate()
        assert (one.returncode, err) == (0, "")
        assert json.loads(out)[0] == FIRST[0]
    assert program.run() == LATER
    assert not [file for file in program.files() if file.name.endswith(".partial")]


KILLED = """
import os, signal
from pathlib import Path
from basedsl.cache import CacheStore

os.replace = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)
CacheStore(Path({folder!r}), 10**9).write("a" * 64, b"x" * 100000)
"""


def test_a_killed_writer_leaves_nothing_that_is_read(program: Any) -> None:
    program.run()
    code = KILLED.format(folder=str(program.cache))
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    (partial,) = (file for file in program.files() if file.name.endswith(".partial"))
    assert program.run() == LATER
    long_ago = time.time() - 10**5
    os.utime(partial, (long_ago, long_ago))
    program.write(scale=7)
    program.run()  # a writer cleans up
    assert not partial.exists()


def test_a_folder_that_cannot_be_written_gives_one_warning(program: Any) -> None:
    # A file in the place of the folder: also the superuser cannot write there.
    program.cache.write_text("")
    assert program.run() == FIRST
    assert program.errors.count("CacheWarning") == 1
    assert "is not kept on disk" in program.errors


def test_a_full_disk_gives_one_warning(
    program: Any, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from basedsl.cache import CacheStore, CacheWarning, store

    write = store._write_new

    def full(name: str, folder: int, content: bytes) -> None:
        write(name, folder, content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_write_new", full)
    with pytest.warns(CacheWarning, match="No space left") as caught:
        assert not CacheStore(cache_folder, 10**9).write("a", b"data")
        assert not CacheStore(cache_folder, 10**9).write("b", b"data")
    assert len(caught) == 1
    assert list(cache_folder.iterdir()) == []


def test_another_version_compiles_anew(program: Any) -> None:
    program.run()
    text = program.path.read_text()
    program.path.write_text(
        "import basedsl.digest as digest\n"
        "digest.package_stamp = lambda package: 'another version'\n" + text
    )
    first = program.run()
    assert first[1] == {"compiled": 1}
    assert program.run()[1] == {"loaded": 1}


def test_functions_of_the_dsl_itself_are_kept(program: Any) -> None:
    own = program.path.parent / "own"
    own.mkdir()
    (own / "ops.py").write_text(
        "from plain_dsl import DSL_\n\n"
        "@DSL_.jit\ndef inner(x):\n    return x + 1\n\n"
        "@DSL_.jit\ndef outer(x):\n    return inner(x) * 2\n"
    )
    program.path.write_text(
        "import json, sys\nfrom basedsl.location import mark_internal\n"
        f"mark_internal({str(own)!r})\nsys.path.append({str(own)!r})\n"
        "import ops\nfrom plain_dsl import DSL_\n"
        "print(json.dumps([ops.outer(3), dict(DSL_.counts)]))\n"
    )
    assert program.run() == [8, {"compiled": 1}]
    assert program.run() == [8, {"loaded": 1}]


HELPER = "K = {k}\n\ndef h(x):\n    return x + {n}\n"
USER = """
import json
import helper_module
from helper_module import K as imported
from plain_dsl import DSL_

@DSL_.jit
def f(x):
    return helper_module.h(x) * helper_module.K * imported

if __name__ == "__main__":
    print(json.dumps([f(1), dict(DSL_.counts)]))
"""


def test_an_edit_of_a_helper_in_another_file_is_seen(program: Any) -> None:
    program.path.write_text(USER)
    helper = program.path.parent / "helper_module.py"
    seen = []
    for k, n in ((1, 1), (1, 1), (1, 5), (3, 5), (3, 5), (1, 1)):
        helper.write_text(HELPER.format(k=k, n=n))
        os.utime(helper, (1e9 + 10 * k + n,) * 2)  # as if hours lay between the edits
        seen.append(program.run())
    compiled, loaded = {"compiled": 1}, {"loaded": 1}
    assert seen == [
        *([2, compiled], [2, loaded], [6, compiled]),
        *([54, compiled], [54, loaded], [2, loaded]),
    ]
