"""The folder of entries: sizes, ages, listing and clearing; what a loaded function can show."""

from __future__ import annotations

import os
import types
from pathlib import Path
from typing import Any

import pytest

from basedsl import DSL, Constexpr, Language, Pipeline, cli
from basedsl.cache import CacheStore
from basedsl.plugin import PluginManager


class Plain(Language):
    """Scalars on the CPU."""

    name = "plain"


def scale(x: Any, pair: Any, n: Constexpr = 2) -> Any:
    if x > 2:
        x = x * n
    return {"x": x, "rest": [pair[0], (n, 0.1, "text", None)]}


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    store = CacheStore(tmp_path, 10**6)
    for i, key in enumerate("abcd"):
        store.write(key, bytes(1000))
        os.utime(tmp_path / f"{key}.code", (i, i))
    assert store.read("a") == bytes(1000)
    store.limit = 2500
    store.write("e", bytes(100))
    assert {one.key for one in store.entries()} == {"a", "d", "e"}


def test_one_entry_larger_than_the_limit_does_not_stay(tmp_path: Path) -> None:
    store = CacheStore(tmp_path, 500)
    store.write("a", bytes(1000))
    assert store.entries() == []


def test_a_loaded_function_shows_what_a_compiled_one_shows(cache_folder: Path) -> None:
    first, second = DSL(Plain()), DSL(Plain())
    one, two = first.jit(scale), second.jit(scale)
    assert one(3, (1, 2)) == two(3, (1, 2)) == {"x": 6, "rest": [1, (2, 0.1, "text", None)]}
    assert (first.counts["compiled"], second.counts["loaded"]) == (1, 1)
    assert second.counts["compiled"] == 0
    (built,), (loaded,) = one.variants.by_key.values(), two.variants.by_key.values()
    assert loaded[0].stages.names == built[0].stages.names
    for name in built[0].stages.names:
        assert loaded[0].stages.text(name) == built[0].stages.text(name)
    assert loaded[0].__mlir__ == built[0].__mlir__
    assert loaded[0].source == built[0].source
    assert [two(i, (i, 2)) for i in range(5)] == [one(i, (i, 2)) for i in range(5)]
    assert second.counts["compiled"] == 0


def test_a_loaded_function_has_its_pipeline_made_when_asked(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DSL(Plain()).jit(scale)(3, (1, 2))
    asked = []

    def pipeline(self: Plain, settings: Any) -> Pipeline:
        asked.append(settings)
        return Language.pipeline(self, settings)

    monkeypatch.setattr(Plain, "pipeline", pipeline)
    loaded = DSL(Plain()).jit(scale)
    assert loaded(3, (1, 2))["x"] == 6
    (variants,) = loaded.variants.by_key.values()
    assert not asked
    assert "entry" in [step.name for step in variants[0].stages.pipeline]
    assert variants[0].stages.pipeline is variants[0].stages.pipeline
    assert len(asked) == 1


def test_a_loaded_function_is_guarded(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = types.SimpleNamespace(n=1)

    def f(x: Any) -> Any:
        return x + config.n

    for _ in range(2):
        dsl = DSL(Plain())
        compiled = dsl.jit(f, preprocess=False)
        config.n = 1
        assert [compiled(i) for i in range(4)] == [1, 2, 3, 4]
        config.n = 5
        assert [compiled(i) for i in range(4)] == [5, 6, 7, 8]
    assert dsl.counts == {"loaded": 2}


@pytest.mark.parametrize(
    "thing", [object(), iter([1]), open], ids=["object", "iterator", "function of the library"]
)
def test_what_has_no_text_stays_off_the_disk(cache_folder: Path, thing: Any) -> None:
    def f(x: Any) -> Any:
        return x if thing is not None else x + 1

    dsl = DSL(Plain())
    assert dsl.jit(f, preprocess=False)(3) == 3
    assert CacheStore(cache_folder, 10**9).entries() == [] or thing is open


def test_function_found_only_by_tracing_disables_the_disk_cache(cache_folder: Path) -> None:
    dsl = DSL(Plain())

    def inner(x: Any) -> Any:
        return x + 1

    known = {"inner": dsl.jit(inner)}

    def f(x: Any) -> Any:
        return globals()["hidden"](x)

    f.__globals__["hidden"] = known["inner"]
    try:
        assert dsl.jit(f, preprocess=False)(3) == 4
    finally:
        del f.__globals__["hidden"]
    assert CacheStore(cache_folder, 10**9).entries() == []


def test_the_command_lists_and_clears(
    cache_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = PluginManager(lambda group: [])
    DSL(Plain()).jit(scale)(3, (1, 2))
    assert cli.main(["cache", "list"], manager) == 0
    shown = capsys.readouterr().out
    assert "scale(Int64, tuple([0]: Int64, [1]: Int64), static 2)" in shown
    assert f"in {cache_folder}" in shown
    assert cli.main(["cache", "clear"], manager) == 0
    assert "removed 1 entries" in capsys.readouterr().out
    assert cli.main(["cache", "list"], manager) == 0
    assert "0 entries" in capsys.readouterr().out


def test_compile_compiles(cache_folder: Path) -> None:
    dsl = DSL(Plain())
    for _ in range(2):
        assert dsl.compile(dsl.jit(scale), 3, (1, 2))(3, (1, 2))["x"] == 6
    assert dsl.counts["loaded"] == 0
    assert CacheStore(cache_folder, 10**9).entries() == []
