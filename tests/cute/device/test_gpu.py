"""Kernels from IR to a real GPU through native host code: skipped where there is none."""

from __future__ import annotations

import ctypes
import pickle

import ml_dtypes
import numpy as np
import pytest

from basedsl.errors import DSLRuntimeError
from basedsl.mlir import MLIRContext, load_bindings
from basedsl.objectstage import native, run_pipeline
from basedsl_cute import dialect
from basedsl_cute.device import driver
from basedsl_cute.device.gpu_launcher import gpu_launcher
from basedsl_cute.device.launch_checks import raise_failed_launch
from basedsl_cute.dsl.pipelines import gpu_pipeline
from basedsl_cute.hardware.targets import target_for_capability

pytestmark = pytest.mark.gpu

G = '!cute.memref<f32, "gmem align<16>", "(?):(1)">'
I = '!cute.memref<i32, "gmem", "(?):(1)">'
F8 = '!cute.memref<f8E4M3FN, "gmem", "(?):(1)">'
INDEX = """%t = nvvm.read.ptx.sreg.tid.x : i32
  %b = nvvm.read.ptx.sreg.ctaid.x : i32
  %w = nvvm.read.ptx.sreg.ntid.x : i32
  %m = arith.muli %b, %w : i32
  %k = arith.addi %m, %t : i32"""


@pytest.fixture(scope="module")
def context():
    return MLIRContext(load_bindings(needs=("irdl",)), dialect.load)


class OnDevice:
    """An array with a copy on the device, brought back by `array()`."""

    def __init__(self, array):
        self.host = np.ascontiguousarray(array)
        self.address = driver.allocate(max(1, self.host.nbytes))
        driver.copy_to_device(self.address, self.host.ctypes.data, self.host.nbytes)

    def array(self):
        driver.synchronize()
        driver.copy_to_host(self.host.ctypes.data, self.address, self.host.nbytes)
        return self.host


@pytest.fixture(params=["cubin", "ptx"])
def launch(request, context):
    """`launch(parameters, body, grid, block, *arrays)` compiles and runs one kernel."""
    kept = []

    def start(kinds, body, grid, block, *arrays, kernel_as=""):
        names = [f"%a{i}" for i in range(len(kinds))]
        parameters = ", ".join(f"{n}: {k}" for n, k in zip(names, kinds, strict=True))
        arguments = ", ".join(f"{n} : {k}" for n, k in zip(names, kinds, strict=True))
        text = f"""module attributes {{gpu.container_module}} {{ gpu.module @kernels {{
          gpu.func @k({parameters}) kernel {kernel_as} {{ {INDEX}
            {body}
            gpu.return }} }}
          func.func @host({", ".join([parameters, "%g: i32", "%n: i32"])}) {{
            %one = arith.constant 1 : i32
            gpu.launch_func @kernels::@k blocks in (%g, %one, %one)
              threads in (%n, %one, %one) : i32 args({arguments})
            return }} }}"""
        target = target_for_capability(*driver.device(driver.current_device()).capability)
        with context.entered():
            module = context.bindings.ir.Module.parse(text)
            stages = run_pipeline(gpu_pipeline(target), module, context)
        table = pickle.loads(stages.data("launches"))
        symbols = gpu_launcher(stages.data(request.param), table)
        code = native.load_object(stages.data("object"), symbols)
        types = [ctypes.c_uint64] * len(arrays) + [ctypes.c_int32] * 2
        kept.append((symbols, code))
        code.function("host", None, *types)(*(a.address for a in arrays), grid, block)
        raise_failed_launch()

    yield start
    driver.synchronize()


def test_vector_add(launch):
    x, y = (np.random.default_rng(s).random(1000, np.float32) for s in (1, 2))
    a, b, c = OnDevice(x), OnDevice(y), OnDevice(np.zeros_like(x))
    body = f"""%n = arith.constant 1000 : i32
        %p = arith.cmpi slt, %k, %n : i32
        scf.if %p {{
          %x = "cute.load"(%a0, %k) : ({G}, i32) -> f32
          %y = "cute.load"(%a1, %k) : ({G}, i32) -> f32
          %s = arith.addf %x, %y : f32
          "cute.store"(%s, %a2, %k) : (f32, {G}, i32) -> ()
        }}"""
    launch([G, G, G], body, 4, 256, a, b, c)
    np.testing.assert_array_equal(c.array(), x + y)


def test_shared_memory_beyond_the_static_limit(launch):
    shared = '!cute.memref<f32, "smem align<16>", "(25600):(1)">'
    x = np.arange(256, dtype=np.float32)
    a, b = OnDevice(x), OnDevice(np.zeros_like(x))
    body = f"""%s = "cute.alloc_smem"() {{bytes = 102400 : i64}} : () -> {shared}
        %last = arith.constant 255 : i32
        %r = arith.subi %last, %t : i32
        %v = "cute.load"(%a0, %t) : ({G}, i32) -> f32
        "cute.store"(%v, %s, %t) : (f32, {shared}, i32) -> ()
        "cute.barrier"() : () -> ()
        %u = "cute.load"(%s, %r) : ({shared}, i32) -> f32
        "cute.store"(%u, %a1, %t) : (f32, {G}, i32) -> ()"""
    launch([G, G], body, 1, 256, a, b)
    np.testing.assert_array_equal(b.array(), x[::-1])


def test_narrow_floats_saturate(launch):
    x = np.array([0.3, -500.0, 449.0, 448.0, 1e9, -1e9, np.inf, 17.5] * 4, np.float32)
    a, b = OnDevice(x), OnDevice(np.zeros(x.size, np.uint8))
    body = f"""%v = "cute.load"(%a0, %k) : ({G}, i32) -> f32
        %n = arith.truncf %v : f32 to f8E4M3FN
        "cute.store"(%n, %a1, %k) : (f8E4M3FN, {F8}, i32) -> ()"""
    launch([G, F8], body, 1, 32, a, b)
    wanted = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    np.testing.assert_array_equal(b.array(), wanted)


@pytest.mark.parametrize("flags", ["", "fastmath<afn>"])
@pytest.mark.parametrize(
    "op", ["exp", "exp2", "log", "log2", "sin", "cos", "tanh", "sqrt", "rsqrt"]
)
def test_math(launch, op, flags):
    x = np.linspace(0.1, 3, 256, dtype=np.float32)
    a, b = OnDevice(x), OnDevice(np.zeros_like(x))
    body = f"""%v = "cute.load"(%a0, %k) : ({G}, i32) -> f32
        %r = math.{op} %v {flags} : f32
        "cute.store"(%r, %a1, %k) : (f32, {G}, i32) -> ()"""
    launch([G, G], body, 1, 256, a, b)
    exact = 1 / np.sqrt(x.astype(float)) if op == "rsqrt" else getattr(np, op)(x.astype(float))
    # CUDA C++ Programming Guide, "Mathematical Functions": 2 ulp or better; approximate ones
    # 2 ** -21 absolute in the middle of their range, tanh 2 ** -10.987 relative.
    tolerance = 3e-7 if not flags else (1e-3 if op == "tanh" else 1e-5)
    np.testing.assert_allclose(b.array(), exact, rtol=tolerance, atol=tolerance)


def test_atomics(launch):
    a, b = OnDevice(np.zeros(2, np.int32)), OnDevice(np.zeros(1, np.float32))
    body = f"""%zero = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %half = arith.constant 0.5 : f32
        %r = "cute.atomic_rmw"(%one, %a0, %zero) {{kind = "add"}} : (i32, {I}, i32) -> i32
        %s = "cute.atomic_rmw"(%t, %a0, %one) {{kind = "max"}} : (i32, {I}, i32) -> i32
        %u = "cute.atomic_rmw"(%half, %a1, %zero) {{kind = "add"}} : (f32, {G}, i32) -> f32"""
    launch([I, G], body, 64, 256, a, b)
    assert a.array().tolist() == [64 * 256, 255]
    assert b.array()[0] == 64 * 256 / 2


def test_clusters(launch):
    if driver.device(driver.current_device()).capability < (9, 0):
        pytest.skip("clusters need sm_90")
    a = OnDevice(np.zeros(8, np.int32))
    body = f"""%r = nvvm.read.ptx.sreg.cluster.ctarank : i32
        "cute.store"(%r, %a0, %b) : (i32, {I}, i32) -> ()"""
    kernel_as = "attributes {nvvm.cluster_dim = array<i32: 4, 1, 1>}"
    launch([I], body, 8, 32, a, kernel_as=kernel_as)
    assert a.array().tolist() == [0, 1, 2, 3] * 2


def test_impossible_launches(launch):
    a = OnDevice(np.zeros(1, np.int32))
    with pytest.raises(DSLRuntimeError, match="has 2000 in x; it must be 1 to 1024"):
        launch([I], "", 1, 2000, a)
    with pytest.raises(DSLRuntimeError, match="it must be 1 to"):
        launch([I], "", 0, 32, a)


def test_two_launches_agree_about_a_required_block(launch):
    a = OnDevice(np.zeros(64, np.int32))
    body = f'"cute.store"(%k, %a0, %k) : (i32, {I}, i32) -> ()'
    kernel_as = "attributes {known_block_size = array<i32: 32, 1, 1>}"
    launch([I], body, 2, 32, a, kernel_as=kernel_as)
    assert a.array().tolist() == list(range(64))
    with pytest.raises(DSLRuntimeError):
        launch([I], body, 1, 64, a, kernel_as=kernel_as)
