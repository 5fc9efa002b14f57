"""Exported files that were changed: one error with the file's name, whatever was changed."""

import math
import random

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLRuntimeError
from basedsl.export.metadata import MetadataError, opened, read_metadata, write_metadata
from basedsl_cute.runtime import load_module

PACKAGES = ("basedsl", "basedsl_cute")


@cute.kernel
def set_kernel(x: cute.Tensor, v: cute.Float32):
    x[cute.arch.thread_idx()[0]] = v


@cute.jit
def set_all(x: cute.Tensor, v: cute.Float32, n: cute.Int64):
    set_kernel(x, v).launch(grid=1, block=32)
    return {"next": n + 1, "twice": (n * 2, v)}


@pytest.fixture(scope="module")
def compiled():
    return cute.compile(set_all, np.zeros(32, np.float32), 1.0, 2, options="--gpu-arch sm_90a")


@pytest.fixture(scope="module")
def exported(compiled, tmp_path_factory):
    if "cubin" not in compiled.stages:
        pytest.skip("no ptxas")
    return compiled.export_to_c(tmp_path_factory.mktemp("exported"), "set")[0]


def flipped(data, at, bit=0x40):
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(DSLRuntimeError) as caught:
        load_module(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_parameters_and_results_come_back_as_they_were(compiled):
    arguments, results = list(compiled.arguments), compiled.results
    kept = {
        "arguments": arguments,
        "results": (results.shape, results.leaves, results.types, results.places),
        "numbers": (1, -2.5, math.inf, True, None, "text"),
    }
    found = read_metadata(write_metadata(kept, PACKAGES), PACKAGES)
    assert found["arguments"] == arguments and found["numbers"] == kept["numbers"]
    assert [a.storage for a in found["arguments"]] == [a.storage for a in arguments]
    assert found["results"][1:] == kept["results"][1:]
    made = type(results).of_parts(*found["results"])
    assert made.make((3, 4, 1.5)) == {"next": 3, "twice": (4, 1.5)}


def test_every_flipped_byte_of_a_description_is_noticed():
    data = write_metadata({"name": "f", "parameters": [("x", cute.Float32)]}, PACKAGES)
    for at in range(len(data)):
        with pytest.raises(MetadataError):
            read_metadata(flipped(data, at), PACKAGES)


def test_an_exported_file_that_is_changed_or_cut_short(exported, tmp_path):
    data = exported.read_bytes()
    assert opened(data)[:4] == b"\x7fELF"
    choose = random.Random(20260101)
    for at in [0, 4, 63, len(data) - 1, *choose.choices(range(len(data)), k=60)]:
        refused(tmp_path / "set.o", flipped(data, at, 1 << choose.randrange(8)))
    for end in [0, 1, 16, 64, len(data) // 2, len(data) - 33, len(data) - 1]:
        refused(tmp_path / "set.o", data[:end])


def test_files_of_others(tmp_path):
    refused(tmp_path / "text.o", b"# a text\n" * 100)
    refused(tmp_path / "foreign.o", b"\x7fELF\x02\x01\x01" + bytes(500))
    refused(tmp_path / "foreign.so", b"\x7fELF\x02\x01\x01" + bytes(500))
    refused(tmp_path / "text.so", b"no library")
    missing = tmp_path / "missing.o"
    with pytest.raises(DSLRuntimeError, match=r"missing\.o cannot be loaded"):
        load_module(missing)


def test_what_a_description_names_is_ours():
    import hashlib

    for text in (
        b'{"class":"os:system"}',
        b'{"object":"subprocess:Popen","fields":{"dict":[]}}',
        b'{"class":"basedsl_cute:jit"}',
        b'{"odd":1}',
        b"[",
    ):
        with pytest.raises(MetadataError):
            read_metadata(hashlib.sha256(text).digest() + text, PACKAGES)
    with pytest.raises(TypeError, match="has no form in a file"):
        write_metadata(np.float32, PACKAGES)
