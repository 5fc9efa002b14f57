"""The native GPU launcher, calling a pretended cuLaunchKernelEx that records what it is given."""

from __future__ import annotations

import ctypes
import dataclasses

import pytest

from basedsl.errors import DSLRuntimeError
from basedsl_cute.device import driver, gpu_launcher, launch_checks
from basedsl_cute.device.launch_checks import KernelEntry, LaunchConfig, LaunchTable


class CUlaunchConfig(ctypes.Structure):
    """cuda.h: CUlaunchConfig_st."""

    _fields_ = (
        *((f"{what}_{axis}", ctypes.c_uint) for what in ("grid", "block") for axis in "xyz"),
        ("smem", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


class CUlaunchAttribute(ctypes.Structure):
    """cuda.h: CUlaunchAttribute_st, whose value is a union of 64 bytes."""

    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


@dataclasses.dataclass
class Recorded:
    grid: tuple
    block: tuple
    smem: int
    stream: int
    attributes: list
    function: int
    args: int


class FakeKernel:
    def __init__(self, name, handle):
        self.name, self.handle = name, handle
        self.attributes = {}

    def attribute(self, name):
        return {"static_smem": 1024}[name]

    def set_attribute(self, which, value, number):
        self.attributes[which, number] = value


class FakeDriver:
    """Stands in for the parts of `driver` that loading and launching use."""

    def __init__(self, monkeypatch):
        self.launches, self.results, self.kernels, self.number = [], [], {}, 0
        self.triggers = []
        self.device = driver.Device(
            0, "pretended", (9, 0), 132, 1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535),
            232448, 233472, 0,
        )  # fmt: skip
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(CUlaunchConfig), *[ctypes.c_void_p] * 3
        )
        self.function = kind(self.launch)
        monkeypatch.setattr(driver, "Library", lambda image: self)
        monkeypatch.setattr(driver, "device", lambda number: self.device)
        monkeypatch.setattr(driver, "current_device", lambda: self.number)
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        monkeypatch.setattr(driver, "address_of", lambda name: address)
        monkeypatch.setattr(driver, "describe_error", lambda code: (f"CUDA_ERROR_{code}", "said"))
        monkeypatch.setattr(gpu_launcher, "_allowed", set())

    def kernel(self, name):
        return self.kernels.setdefault(name, FakeKernel(name, 0x100 + len(self.kernels)))

    def launch(self, config, function, args, extra):
        c = config.contents
        attributes = [CUlaunchAttribute.from_address(c.attributes + 72 * i) for i in range(c.count)]
        self.launches.append(
            Recorded(
                (c.grid_x, c.grid_y, c.grid_z),
                (c.block_x, c.block_y, c.block_z),
                c.smem,
                c.stream or 0,
                [(a.id, tuple(a.value[:3])) for a in attributes],
                function,
                args,
            )
        )
        self.triggers += [a.value[3] for a in attributes if a.id == 7]
        assert extra is None
        return self.results.pop(0) if self.results else 0


@pytest.fixture
def gpu(monkeypatch):
    return FakeDriver(monkeypatch)


TABLE = LaunchTable(
    (KernelEntry("plain", ("i32",)), KernelEntry("big", (), uses_dynamic_smem=True))
)


@pytest.fixture
def launch(gpu):
    """Calls the native launcher; raises what it reports."""
    symbols = gpu_launcher.gpu_launcher(b"image", TABLE)
    function = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(LaunchConfig), ctypes.c_void_p
    )(symbols[launch_checks.LAUNCH_SYMBOL])

    def call(args=0x5000, **fields):
        config = LaunchConfig()
        config.grid[:] = (1, 1, 1)
        config.block[:] = (32, 1, 1)
        for name, value in fields.items():
            if isinstance(value, tuple):
                getattr(config, name)[:] = value
            else:
                setattr(config, name, value)
        status = function(symbols[launch_checks.LAUNCHER_SYMBOL], config, args)
        launch_checks.raise_failed_launch()
        assert status == 0

    return call


def test_the_driver_gets_what_was_asked(gpu, launch):
    launch(grid=(2**31 - 1, 65535, 3), block=(8, 4, 2), smem=512, stream=0xABC, kernel=1)
    (seen,) = gpu.launches
    assert seen == Recorded(
        (2**31 - 1, 65535, 3), (8, 4, 2), 512, 0xABC, [], gpu.kernels["big"].handle, 0x5000
    )


CLUSTER, COOPERATIVE, PDL = (4, (2, 4, 1)), (2, (1, 0, 0)), (6, (1, 0, 0))


@pytest.mark.parametrize("has_cluster", [False, True])
@pytest.mark.parametrize("flags", [0, launch_checks.COOPERATIVE, launch_checks.PDL, 3])
def test_attributes(gpu, launch, has_cluster, flags):
    launch(cluster=(2, 4, 1) if has_cluster else (0, 0, 0), grid=(4, 4, 1), flags=flags)
    wanted = [CLUSTER] * has_cluster
    wanted += [COOPERATIVE] * bool(flags & launch_checks.COOPERATIVE)
    wanted += [PDL] * bool(flags & launch_checks.PDL)
    assert gpu.launches[0].attributes == wanted


def test_events_are_attributes(gpu, launch):
    launch(cluster=(2, 4, 1), grid=(4, 4, 1), completion_event=(7 << 32) + 5, completion_flags=2)
    launch(programmatic_event=9, programmatic_flags=3 | 1 << 32, flags=launch_checks.PDL)
    first, second = (one.attributes for one in gpu.launches)
    assert first == [CLUSTER, (12, (5, 7, 2))]
    assert second == [PDL, (7, (9, 0, 3))]
    assert gpu.triggers == [1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grid": (0, 1, 1)}, r"grid=\(0, 1, 1\) has 0 in x"),
        ({"grid": (1, 65536, 1)}, "has 65536 in y; it must be 1 to 65535"),
        ({"grid": (1, 1, -(2**40))}, "it must be 1 to 65535"),
        ({"block": (1, 1, 65)}, "has 65 in z; it must be 1 to 64"),
        ({"block": (32, 32, 2)}, "2048 threads"),
        ({"smem": 232448}, "it can have 0 to 231424"),
        ({"smem": -8}, "asks for -8 bytes"),
    ],
)
def test_limits_are_checked_before_the_driver_is_asked(gpu, launch, fields, message):
    with pytest.raises(DSLRuntimeError, match=message):
        launch(**fields)
    assert gpu.launches == []
    launch()
    assert len(gpu.launches) == 1


def test_errors_of_the_driver_become_exceptions(gpu, launch):
    gpu.results = [719]
    with pytest.raises(driver.DSLCudaRuntimeError, match="launch of plain failed: CUDA_ERR") as no:
        launch()
    assert no.value.error_code == 719


def test_kernels_with_dynamic_shared_memory_get_all_there_is(gpu, launch):
    assert gpu.kernels["big"].attributes == {(driver.MAX_DYNAMIC_SMEM, 0): 232448 - 1024}
    assert gpu.kernels["plain"].attributes == {}


def test_on_another_device_the_attribute_is_set_when_it_is_missed(gpu, launch):
    gpu.number, gpu.results = 3, [1]
    launch(kernel=1, smem=100_000)
    assert len(gpu.launches) == 2
    assert (driver.MAX_DYNAMIC_SMEM, 3) in gpu.kernels["big"].attributes


def test_it_is_tried_again_only_once(gpu, launch):
    gpu.results = [1, 1]
    with pytest.raises(driver.DSLCudaRuntimeError):
        launch(smem=100_000)
    assert len(gpu.launches) == 2


def test_without_a_driver_nothing_can_be_loaded(monkeypatch):
    monkeypatch.setattr(driver, "has_library", lambda: False)
    monkeypatch.setattr(driver, "_initialised", lambda: None)
    with pytest.raises(DSLRuntimeError, match="a GPU target needs a GPU driver, and"):
        gpu_launcher.gpu_launcher(b"image", TABLE)
