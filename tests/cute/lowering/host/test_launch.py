"""Host code that launches: lowered, compiled to native code, run against a recording launcher."""

from __future__ import annotations

import ctypes
import pickle
import re
import threading

import pytest

from basedsl.errors import CompilerBug, DSLRuntimeError
from basedsl.objectstage import Step, native, run_pipeline
from basedsl_cute.device.launch_checks import (
    COOPERATIVE,
    PDL,
    KernelEntry,
    LaunchTable,
    python_launcher,
    raise_failed_launch,
    unlaunchable,
)
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.dsl.pipelines import simulator_pipeline
from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.hardware.targets import TARGETS
from basedsl_cute.lowering.host.launch import launch_table
from basedsl_cute.lowering.kernel_build import kernel_build

G = '!cute.memref<f32, "gmem", "(?):(1)">'
KERNELS = f"""gpu.module @kernels {{
  gpu.func @other() kernel {{ gpu.return }}
  gpu.func @k(%a: {G}, %n: i32, %f: f64, %p: i1, %h: f16, %w: index) kernel
      attributes {{cute.note = 1}} {{ gpu.return }} }}"""
K_ARGS = f"args(%a : {G}, %n : i32, %f : f64, %p : i1, %h : f16, %w : index)"
HOST_ARGUMENTS = f"%a: {G}, %n: i32, %g: i32, %b: i32, %s: !llvm.ptr, %m: i32"
CONSTANTS = """%f = arith.constant 2.5 : f64
  %p = arith.constant true
  %h = arith.constant 1.5 : f16
  %w = arith.constant 77 : index
  %one = arith.constant 1 : i32"""
C_TYPES = (
    ctypes.c_uint64,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_int32,
)


class Host:
    """A host function `host` compiled with a launcher that records."""

    def __init__(
        self, lowering, body: str, kernels: str = KERNELS, limits: LaunchLimits | None = None
    ):
        text = f"""module attributes {{gpu.container_module}} {{ {kernels}
          func.func @host({HOST_ARGUMENTS}) {{ {CONSTANTS}
          {body}
          return }} }}"""
        with lowering.context.entered():
            module = lowering.ir.Module.parse(text)
            pipeline = simulator_pipeline(TARGETS["sim"])
            self.stages = run_pipeline(pipeline, module, lowering.context, options=CuteOptions())
        self.table = pickle.loads(self.stages.data("launches"))
        self.launches = []
        self.failure = None
        self.symbols = python_launcher(self.table, limits or LaunchLimits(), self.start)
        code = native.load_object(self.stages.artifact, self.symbols)
        self.function = code.function("host", None, *C_TYPES)

    def start(self, launch):
        if self.failure is not None:
            raise self.failure
        kinds = (
            ctypes.c_uint64,
            ctypes.c_int32,
            ctypes.c_double,
            ctypes.c_bool,
            ctypes.c_uint16,
            ctypes.c_int64,
        )
        names = launch.kernel.arguments
        values = [launch.argument(i, kinds[i]) for i in range(len(names))]
        self.launches.append((launch, values))

    def __call__(self, *values):
        self.function(*values)
        raise_failed_launch()


def test_a_launch_arrives_whole(lowering):
    host = Host(
        lowering,
        f"""%v = "cute.view"(%a, %n) : ({G}, i32) -> {G}
        gpu.launch_func <%s : !llvm.ptr> @kernels::@k clusters in (%one, %one, %one)
          blocks in (%g, %one, %one) threads in (%b, %one, %one) : i32
          dynamic_shared_memory_size %m {K_ARGS.replace("%a :", "%v :")} {{cute.pdl}}""",
    )
    host(0x1000, 3, 7, 128, 0x77, 64)
    ((launch, values),) = host.launches
    assert launch.kernel.name == "k"
    assert (launch.grid, launch.block, launch.cluster) == ((7, 1, 1), (128, 1, 1), (1, 1, 1))
    assert (launch.smem, launch.stream, launch.flags) == (64, 0x77, PDL)
    assert values == [0x1000 + 3 * 4, 3, 2.5, True, 0x3E00, 77]


def test_what_is_not_said_is_zero(lowering):
    host = Host(
        lowering,
        f"""%i = arith.constant 2 : index
        gpu.launch_func @kernels::@other blocks in (%i, %i, %i) threads in (%i, %i, %i)
          {{cute.cooperative}}
        gpu.launch_func @kernels::@k blocks in (%i, %i, %i) threads in (%i, %i, %i) {K_ARGS}""",
    )
    host(0, 0, 0, 0, 0, 0)
    (other, _), (k, _) = host.launches
    assert (other.kernel.name, k.kernel.name) == ("other", "k")
    assert (other.cluster, other.smem, other.stream, other.flags) == (None, 0, 0, COOPERATIVE)
    assert (k.grid, k.block, k.flags) == ((2, 2, 2), (2, 2, 2), 0)


def test_launches_in_control_flow(lowering):
    host = Host(
        lowering,
        f"""%c0 = arith.constant 0 : i32
        scf.for %i = %c0 to %n step %one : i32 {{
          %odd = arith.andi %i, %one : i32
          %is = arith.cmpi eq, %odd, %one : i32
          scf.if %is {{
            gpu.launch_func @kernels::@k blocks in (%i, %one, %one) threads in (%one, %one, %one)
              : i32 {K_ARGS}
          }} }}""",
    )
    host(0, 6, 0, 0, 0, 0)
    assert [launch.grid[0] for launch, _ in host.launches] == [1, 3, 5]


def test_shared_memory_of_the_compiler_is_added(lowering):
    shared = '!cute.memref<f32, "smem", "(?):(1)">'
    kernels = f"""gpu.module @kernels {{ gpu.func @big() kernel {{
      %s = "cute.alloc_smem"() {{bytes = 65536 : i64}} : () -> {shared}
      gpu.return }} }}"""
    body = """gpu.launch_func @kernels::@big blocks in (%one, %one, %one)
      threads in (%one, %one, %one) : i32 dynamic_shared_memory_size %m"""
    host = Host(lowering, body, kernels, LaunchLimits(smem=227 * 1024))
    host(0, 0, 0, 0, 0, 100)
    assert host.launches[0][0].smem == 65536 + 100
    assert host.table.kernels[0].smem_bytes == 65536
    assert host.table.kernels[0].uses_dynamic_smem


LAUNCH = f"""gpu.launch_func @kernels::@k blocks in (%g, %one, %one) threads in (%b, %one, %one)
  : i32 dynamic_shared_memory_size %m {K_ARGS}"""


@pytest.mark.parametrize(
    ("grid", "block", "smem", "message"),
    [
        (0, 1, 0, r"grid=\(0, 1, 1\) has 0 in x; it must be 1 to 2147483647"),
        (-3, 1, 0, r"grid=\(-3, 1, 1\) has -3 in x; it must be 1 to 2147483647"),
        (1, 0, 0, r"block=\(0, 1, 1\) has 0 in x; it must be 1 to 1024"),
        (1, 1025, 0, r"block=\(1025, 1, 1\) has 1025 in x; it must be 1 to 1024"),
        (1, 1, 1 << 20, "a block asks for 1048576 bytes of shared memory; it can have 0 to 49152"),
        (1, 1, -1, "a block asks for -1 bytes"),
    ],
)
def test_impossible_launches_are_refused(lowering, grid, block, smem, message):
    host = Host(lowering, LAUNCH)
    with pytest.raises(DSLRuntimeError, match=f"launch of k: {message}"):
        host(0, 0, grid, block, 0, smem)
    assert host.launches == []
    host(0, 0, 1, 1, 0, 0)  # still usable
    assert len(host.launches) == 1


def test_a_failed_launch_ends_the_host_function(lowering):
    host = Host(lowering, f"{LAUNCH}\n{LAUNCH}")
    host.failure = DSLRuntimeError("the simulator says no")
    with pytest.raises(DSLRuntimeError, match="the simulator says no"):
        host(0, 0, 1, 1, 0, 0)
    host.failure = None
    host(0, 0, 1, 1, 0, 0)
    assert len(host.launches) == 2


def test_a_failure_is_at_the_line_of_the_launch(lowering):
    host = Host(lowering, f'{LAUNCH} loc("/src/user.py":12:5)')
    with pytest.raises(DSLRuntimeError) as refused:
        host(0, 0, 0, 1, 0, 0)
    assert str(refused.value.span) == "/src/user.py:12"


def test_any_exception_of_the_launcher_arrives(lowering):
    host = Host(lowering, LAUNCH)
    host.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        host(0, 0, 1, 1, 0, 0)


def test_failures_stay_in_their_thread(lowering):
    host = Host(lowering, LAUNCH)
    seen = {}

    def launch(grid):
        try:
            host(0, 0, grid, 1, 0, 0)
        except DSLRuntimeError as error:
            seen[grid] = error.message

    threads = [threading.Thread(target=launch, args=(grid,)) for grid in (0, 1, -1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen.keys() == {0, -1}


def test_printing_on_the_host(lowering, capfd):
    host = Host(lowering, 'gpu.printf "n = %d, f = %.2f, h = %g\\n", %n, %f, %h : i32, f64, f16')
    host(0, 42, 0, 0, 0, 0)
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "n = 42, f = 2.50, h = 1.5\n"


def test_a_launch_of_what_is_not_in_the_table_is_a_bug(lowering):
    text = f"""module attributes {{gpu.container_module}} {{ {KERNELS}
      func.func @host({HOST_ARGUMENTS}) {{ {CONSTANTS} {LAUNCH} return }} }}"""

    def empty_table(op, context):
        kernel_build(context).launches = LaunchTable()

    pipeline = simulator_pipeline(TARGETS["sim"]).after("programs", Step("table", empty_table))
    with lowering.context.entered():
        module = lowering.ir.Module.parse(text)
        with pytest.raises(CompilerBug, match="no kernel 'k' to launch"):
            run_pipeline(pipeline, module, lowering.context, options=CuteOptions())


def test_the_table_of_a_module(lowering):
    text = """module attributes {gpu.container_module} { gpu.module @kernels {
      gpu.func @a(%p: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>}, %n: i64) kernel
        attributes {nvvm.reqntid = array<i32: 64, 2, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>}
        { gpu.return }
      gpu.func @helper() { gpu.return } } }"""
    with lowering.context.entered():
        module = lowering.ir.Module.parse(text)
        table = launch_table(module.operation, lowering.context.bindings)
    assert table == LaunchTable(
        (
            KernelEntry(
                "a", ("byval !llvm.array<128 x i8>", "i64"), block=(64, 2, 1), cluster=(2, 1, 1)
            ),
        )
    )


def _launch(**fields):
    from basedsl_cute.device.launch_checks import LaunchParameters

    defaults = {
        "kernel": KernelEntry("k", ()),
        "grid": (4, 1, 1),
        "block": (32, 1, 1),
        "cluster": None,
        "smem": 0,
        "stream": 0,
        "flags": 0,
        "args": 0,
    }
    return LaunchParameters(**{**defaults, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grid": (1, 65536, 1)}, "has 65536 in y; it must be 1 to 65535"),
        ({"block": (1, 1, 65)}, "has 65 in z; it must be 1 to 64"),
        ({"block": (32, 32, 2)}, "has 2048 threads; a block has at most 1024"),
        ({"kernel": KernelEntry("k", (), block=(64, 1, 1))}, r"compiled for \(64, 1, 1\)"),
        ({"cluster": (3, 1, 1)}, r"cluster=\(3, 1, 1\) does not divide grid"),
        ({"cluster": (4, 0, 1)}, "has 0 in y; it must be 1 to 16"),
        ({"kernel": KernelEntry("k", (), cluster=(3, 1, 1))}, "does not divide grid"),
    ],
)
def test_refusals(fields, message):
    error = unlaunchable(_launch(**fields), LaunchLimits())
    assert isinstance(error, DSLRuntimeError)
    assert error.message.startswith("launch of k: ")
    assert re.search(message, error.message)


def test_what_is_possible_is_not_refused():
    assert unlaunchable(_launch(cluster=(2, 1, 1)), LaunchLimits()) is None
    assert unlaunchable(_launch(grid=(2**31 - 1, 65535, 65535)), LaunchLimits()) is None
