"""The table of targets and what is chosen from it."""

from __future__ import annotations

import pytest

from basedsl.errors import DSLError
from basedsl_cute.device import driver
from basedsl_cute.device.detect import detect
from basedsl_cute.hardware.targets import (
    ENVIRONMENT_VARIABLE,
    SIM,
    TARGETS,
    target_for_capability,
    target_of,
)


def test_rows_are_consistent():
    for name, target in TARGETS.items():
        assert target.name == name
        assert target.static_smem <= target.smem_per_block <= target.smem_per_sm
        if target.is_gpu:
            assert target.ptx >= 83 and target.features == f"+ptx{target.ptx}"


@pytest.mark.parametrize(
    ("name", "capability"), [("sm_90a", (9, 0)), ("sm_103f", (10, 3)), ("sim", (0, 0))]
)
def test_capabilities(name, capability):
    assert TARGETS[name].capability == capability


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((8, 0), "sm_80"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((12, 1), "sm_121"),
        ((10, 7), "sm_103"),  # newer than the table: the newest that such a device runs
        ((19, 0), "sm_121"),
    ],
)
def test_the_target_for_a_device(capability, name):
    assert target_for_capability(*capability).name == name


def test_devices_that_are_too_old():
    with pytest.raises(DSLError, match=r"7\.0 is too old"):
        target_for_capability(7, 0)


def test_names_are_forgiving_about_case():
    assert target_of(" SM_90A ") is TARGETS["sm_90a"]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DSLError, match="'sm_42' is no target; there are sm_75, sm_80"):
        target_of("sm_42")


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "sm_100a")
    monkeypatch.setattr(driver, "capability_or_none", lambda: (9, 0))
    assert detect().name == "sm_100a"


def test_the_device_decides(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(driver, "capability_or_none", lambda: (9, 0))
    assert detect().name == "sm_90a"


def test_without_a_device_it_is_the_simulator(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(driver, "capability_or_none", lambda: None)
    assert detect().name == SIM
