"""Code from the disk is run: what somebody else could have written there is refused."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

import pytest

from basedsl.cache import CacheStore
from basedsl.cache.store import CacheWarning


@pytest.fixture
def store(tmp_path: Path) -> CacheStore:
    store = CacheStore(tmp_path / "code", 10**6)
    store.write("a", b"content")
    return store


def test_the_folder_and_its_entries_are_their_owners_alone(store: CacheStore) -> None:
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.folder / "a.code").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_is_refused_once(store: CacheStore, mode: int) -> None:
    store.folder.chmod(mode)
    with pytest.warns(CacheWarning, match=f"others may write the folder {store.folder}; `chmod"):
        assert store.read("a") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.read("a") is None
        assert not store.write("b", b"more")
    store.folder.chmod(0o700)
    assert store.read("a") == b"content"


def test_an_entry_that_others_may_write_is_refused(store: CacheStore) -> None:
    (store.folder / "a.code").chmod(0o666)
    with pytest.warns(CacheWarning, match="others may write the file .*a.code"):
        assert store.read("a") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("which", ["", "a.code"])
def test_what_belongs_to_another_user_is_refused(store: CacheStore, which: str) -> None:
    os.chown(store.folder / which, 65534, -1)
    with pytest.warns(CacheWarning, match="belongs to another user; name a folder of yours"):
        assert store.read("a") is None


def test_links_are_not_followed(store: CacheStore, tmp_path: Path) -> None:
    (store.folder / "a.code").rename(tmp_path / "elsewhere")
    (store.folder / "a.code").symlink_to(tmp_path / "elsewhere")
    assert store.read("a") is None
    assert store.write("a", b"new")
    assert store.read("a") == b"new"
    assert not (store.folder / "a.code").is_symlink()


def test_a_fifo_does_not_hang(store: CacheStore) -> None:
    (store.folder / "a.code").unlink()
    os.mkfifo(store.folder / "a.code")
    assert store.read("a") is None
    assert store.write("a", b"new")
    assert store.read("a") == b"new"


def test_a_folder_named_like_an_entry_is_no_entry(store: CacheStore) -> None:
    (store.folder / "b.code").mkdir()
    assert store.read("b") is None
    with pytest.warns(CacheWarning, match="cannot be written"):
        assert not store.write("b", b"content")


def test_a_folder_that_is_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "code").write_text("")
    store = CacheStore(tmp_path / "code", 10**6)
    assert store.read("a") is None
    with pytest.warns(CacheWarning, match="cannot be written"):
        assert not store.write("a", b"content")


@pytest.mark.parametrize("content", [b"", b"basedsl3", b"basedsl3" + bytes(40), b"x" * 100])
def test_an_entry_that_is_not_whole_is_absent_and_removed(
    store: CacheStore, content: bytes
) -> None:
    (store.folder / "a.code").write_bytes(content)
    assert store.read("a") is None
    assert not (store.folder / "a.code").exists()


def test_an_entry_from_elsewhere_is_absent(store: CacheStore, tmp_path: Path) -> None:
    """Before anything of it is unpickled or run, its content is authenticated."""
    other = CacheStore(tmp_path / "other", 10**6)
    other.write("a", b"somebody else's")
    (store.folder / "a.code").write_bytes((other.folder / "a.code").read_bytes())
    assert store.read("a") is None
    assert not (store.folder / "a.code").exists()


def test_the_key_is_its_owners_alone(store: CacheStore) -> None:
    assert stat.S_IMODE((store.folder / "key").stat().st_mode) == 0o600
    store.clear()
    assert store.write("a", b"content") and store.read("a") == b"content"
    (store.folder / "key").chmod(0o622)
    with pytest.warns(CacheWarning, match="others may write the file .*key"):
        assert store.read("a") is None
