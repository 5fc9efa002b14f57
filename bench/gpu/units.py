"""Latency and throughput of each unit of a GPU by micro-benchmarks: the simulator's clock.

    python bench/gpu/units.py --out bench/results/DATE-GPU-units.json
    python bench/gpu/units.py --check sm_90a      # no GPU: compile the kernels

Needs cuda-bindings and NVRTC (the package nvidia-cuda-nvrtc). Kernels that time themselves run a
block on every multiprocessor and give the median of the blocks' clock cycles; streams, L2 and
launches are timed by events. Medians of several launches. The table names a unit, the number and
how it was asked for.
"""

import argparse
import ctypes
import json
import statistics
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SMEM = 200 * 1024
GIB = 1 << 30


def wgmma_kernels():
    """CUDA C++ of kernels that issue wgmma of m64nNk16, one chain of accumulators a warpgroup."""
    return "".join(_wgmma(n) for n in (64, 128, 256))


def _wgmma(n):
    count = n // 2
    places = ",".join(f"%{i}" for i in range(count))
    text = (
        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{places}}}, %{count}, "
        f"%{count + 1}, 1, 1, 1, 0, 0;"
    )
    outputs = ", ".join(f'"+f"(c[{i}])' for i in range(count))
    return f"""
extern "C" __global__ void __launch_bounds__(256) wgmma_{n}(u64 *out, int turns, int never,
                                                            int batch) {{
  extern __shared__ __align__(1024) char s[];
  for (int i = threadIdx.x; i < 16384; i += blockDim.x)
    ((u32 *)s)[i] = 0x2e662e66 ^ (i * 2654435761u & 0x83ff83ff);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  float c[{count}];
  for (int i = 0; i < {count}; i++)
    c[i] = 0;
  u64 d = (u64)1 << 62 | (u64)64 << 32 | (u64)1 << 16;
  u64 a = d | (shared_address(s) + threadIdx.x / 128 * 8192 & 0x3ffff) >> 4;
  u64 b = d | (shared_address(s) + 16384 & 0x3ffff) >> 4;
  BEGIN for (int t = 0; t < turns; t++) {{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < batch; i++)
      asm volatile("{text}" : {outputs} : "l"(a + 2 * (i & 3)), "l"(b + 2 * (i & 3)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  END if (never) for (int i = 0; i < {count}; i++) out[threadIdx.x + i] = (u64)c[i];
}}
"""


def source():
    return (HERE / "units.cu").read_text() + wgmma_kernels()


def check(result):
    """The values of a call of cuda-bindings. Raises RuntimeError for an error code."""
    status, *values = result
    if int(status):
        raise RuntimeError(str(status))
    return values[0] if len(values) == 1 else values


def compiled(arch):
    """The machine code for `arch`. Raises RuntimeError with the compiler's messages."""
    from cuda.bindings import nvrtc

    program = check(nvrtc.nvrtcCreateProgram(source().encode(), b"units.cu", 0, [], []))
    options = [f"--gpu-architecture={arch}".encode()]
    if int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]):
        log = b" " * check(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    code = b" " * check(nvrtc.nvrtcGetCUBINSize(program))
    check(nvrtc.nvrtcGetCUBIN(program, code))
    return code


class Device:
    """A GPU with the kernels loaded; `run` and `seconds` launch them."""

    def __init__(self):
        from cuda.bindings import driver

        self.driver = driver
        check(driver.cuInit(0))
        self.device = check(driver.cuDeviceGet(0))
        context = check(driver.cuDevicePrimaryCtxRetain(self.device))
        check(driver.cuCtxSetCurrent(context))
        kind = driver.CUdevice_attribute
        ask = lambda which: check(driver.cuDeviceGetAttribute(which, self.device))  # noqa: E731
        major = ask(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        minor = ask(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        self.arch = f"sm_{major}{minor}a"
        self.processors = ask(kind.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self.l2_bytes = ask(kind.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        self.name = check(driver.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode()
        self.module = check(driver.cuModuleLoadData(compiled(self.arch)))
        self.stream = check(driver.cuStreamCreate(0))
        self.events = [check(driver.cuEventCreate(0)) for _ in range(2)]
        self.functions = {}
        self.out = check(driver.cuMemAlloc(1 << 20))

    def function(self, name):
        if name not in self.functions:
            found = check(self.driver.cuModuleGetFunction(self.module, name.encode()))
            dynamic = (
                self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            )
            check(self.driver.cuFuncSetAttribute(found, dynamic, SMEM))
            self.functions[name] = found
        return self.functions[name]

    def launch(self, name, grid, block, *arguments, smem=0):
        """Launch a kernel; arguments are (value, ctypes type)."""
        values = tuple(value for value, _ in arguments)
        types = tuple(kind for _, kind in arguments)
        check(
            self.driver.cuLaunchKernel(
                self.function(name), grid, 1, 1, block, 1, 1, smem, self.stream, (values, types), 0
            )
        )

    def cycles(self, name, block, turns, *more, smem=0, blocks=None, before=None):
        """The cycles that a kernel says it took: the median of its blocks, and of three launches
        after a first. `before` is called before each.
        """
        blocks = blocks or self.processors
        found = []
        for _ in range(4):
            if before is not None:
                before()
            self.launch(
                name, blocks, block, (int(self.out), ctypes.c_void_p), (turns, ctypes.c_int),
                (0, ctypes.c_int), *more, smem=smem,
            )  # fmt: skip
            check(self.driver.cuStreamSynchronize(self.stream))
            host = np.zeros(blocks, np.uint64)
            check(self.driver.cuMemcpyDtoH(host.ctypes.data, self.out, host.nbytes))
            found.append(float(np.median(host)))
        return statistics.median(found[1:])

    def seconds(self, launches, repeat=5):
        """The median seconds of `launches()`, between two events."""
        found = []
        for _ in range(repeat + 1):
            check(self.driver.cuEventRecord(self.events[0], self.stream))
            launches()
            check(self.driver.cuEventRecord(self.events[1], self.stream))
            check(self.driver.cuEventSynchronize(self.events[1]))
            found.append(check(self.driver.cuEventElapsedTime(*self.events)) / 1000)
        return statistics.median(found[1:])


class Table:
    """The rows: a unit's name, a number, its unit of measurement, and how it was asked for."""

    def __init__(self):
        self.rows = {}

    def add(self, name, value, unit, how):
        self.rows[name] = {"value": round(value, 4), "unit": unit, "how": how}
        print(f"{name:<34} {value:>12.3f}  {unit:<22} {how}", flush=True)


INT, POINTER, WIDE = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64


def arithmetic(device, table):
    pipes = [("ffma", 1), ("imad", 1), ("alu", 2), ("mufu", 1)]
    for name, each in pipes:
        cycles = device.cycles(f"{name}_1", 32, 64)
        table.add(f"{name}_latency", cycles / (64 * 16 * each), "cycles", "a chain in one warp")
    for name, each in [*pipes, ("half2", 1), ("dfma", 1), ("shuffle", 1)]:
        cycles = device.cycles(f"{name}_8", 1024, 32)
        done = 32 * 32 * 16 * 8 * each
        table.add(f"{name}_rate", done / cycles, "warp instr/cycle/SM", "32 warps, 8 chains each")
    cycles = device.cycles("ffma_8", 128, 64)
    rate = 4 * 64 * 16 * 8 / cycles
    table.add("issue_rate", rate, "warp instr/cycle/SM", "fma of 4 warps, 8 chains each")


def shared(device, table):
    cycles = device.cycles("shared_chase", 32, 64)
    table.add("shared_latency", cycles / 1024, "cycles", "a chain of 4-byte loads")
    for stride, ways in ((4, 1), (8, 2), (16, 4), (128, 32), (0, 0)):
        cycles = device.cycles("lds32", 512, 64, (stride, INT), smem=65536)
        name = f"lds32_{ways}way" if ways else "lds32_broadcast"
        table.add(name, cycles / (16 * 64 * 16), "cycles/warp instr/SM", f"stride {stride}")
    for kernel in ("lds128", "sts128", "ldmatrix4"):
        for stride in (16, 128, 144):
            cycles = device.cycles(kernel, 512, 64, (stride, INT), smem=65536)
            name = f"{kernel}_stride{stride}"
            table.add(name, cycles / (16 * 64 * 8), "cycles/warp instr/SM", "16 warps")
    cycles = device.cycles("ldmatrix4", 32, 64, (16, INT), smem=65536)
    table.add("ldmatrix4_one_warp", cycles / (64 * 8), "cycles/warp instr", "8 in flight")


def tensor_cores(device, table):
    cycles = device.cycles("mma_1", 32, 64)
    table.add("mma_latency", cycles / 256, "cycles", "m16n8k16 f16, a chain in one warp")
    for warps in (4, 8, 16):
        cycles = device.cycles("mma_8", 32 * warps, 64)
        rate = warps * 64 * 4 * 8 * 2 * 16 * 8 * 16 / cycles
        table.add(f"mma_rate_{warps}warps", rate, "flop/cycle/SM", "m16n8k16 f16, 8 chains a warp")
    for n in (64, 128, 256):
        for groups in (1, 2):
            cycles = device.cycles(f"wgmma_{n}", 128 * groups, 32, (16, INT), smem=98304)
            rate = groups * 32 * 16 * 2 * 64 * n * 16 / cycles
            name = f"wgmma_rate_n{n}_{groups}groups"
            table.add(name, rate, "flop/cycle/SM", "m64nNk16 f16, 16 a commit, waited for")
        one = device.cycles(f"wgmma_{n}", 128, 64, (1, INT), smem=98304) / 64
        four = device.cycles(f"wgmma_{n}", 128, 64, (4, INT), smem=98304) / 64
        table.add(f"wgmma_trip_n{n}", one, "cycles", "fence, one wgmma, commit, wait")
        table.add(f"wgmma_step_n{n}", (four - one) / 3, "cycles", "each further one of the commit")


def memory(device, table):
    driver = device.driver
    size = 8 * GIB
    big = int(check(driver.cuMemAlloc(size)))
    check(driver.cuMemsetD32(big, 0x3F800000, size // 4))

    def flush():
        check(driver.cuMemsetD32Async(big + 7 * GIB, 1, GIB // 4, device.stream))

    def chain(nbytes, stride):
        count = nbytes // stride
        nbytes = count * stride
        device.launch(
            "make_chain", -(-count // 256), 256, (big, POINTER), (nbytes, WIDE), (stride, WIDE)
        )

    chain(16 * 1024, 128)
    cycles = device.cycles("chase_l1", 1, 1024, (big, WIDE), blocks=1)
    table.add("l1_latency", cycles / 1024, "cycles", "a chain in 16 KiB")
    chain(4 << 20, 4096 + 128)
    device.cycles("chase_l2", 1, 2048, (big, WIDE), blocks=1)
    cycles = device.cycles("chase_l2", 1, 1024, (big, WIDE), blocks=1)
    table.add("l2_latency", cycles / 1024, "cycles", "a chain in 4 MiB, read before")
    chain(2 * GIB, 32768 + 128)
    cycles = device.cycles("chase_l2", 1, 16384, (big, WIDE), blocks=1, before=flush)
    table.add("hbm_latency", cycles / 16384, "cycles", "a chain in 2 GiB")

    cycles = device.cycles("read_l1", 1024, 64, (big, POINTER))
    table.add("l1_rate", 32 * 64 * 8 * 512 / cycles, "bytes/cycle/SM", "hits, 16 bytes a thread")

    def stream(name, blocks, threads, nbytes, repeat=1):
        def launches():
            device.launch(
                name, blocks, threads, (big + 4 * GIB, POINTER), (big, POINTER),
                (nbytes // 16, WIDE), (repeat, INT), (0, INT),
            )  # fmt: skip

        return device.seconds(launches)

    sms, large = device.processors, 3 * GIB
    for nbytes in (16 << 20, 32 << 20):
        seconds = stream("read_cg", sms * 2, 1024, nbytes, 200)
        name = f"l2_read_{nbytes >> 20}mib"
        table.add(name, nbytes * 200 / seconds / 1e9, "GB/s", "read again and again, 16 bytes")
    for name, blocks in (("read_4", large // 16 // 1024), ("write_4", large // 16 // 1024)):
        seconds = stream(name, blocks, 256, large)
        table.add(f"hbm_{name[:-2]}", large / seconds / 1e9, "GB/s", "3 GiB, 4 x 16 bytes a thread")
    for name in ("copy_1", "copy_4"):
        blocks = large // 16 // 256 // int(name[-1])
        seconds = stream(name, blocks, 256, large)
        table.add(f"hbm_{name}", 2 * large / seconds / 1e9, "GB/s", "3 GiB read and written")
    for warps in (1, 2, 4, 8, 16, 32, 64):
        part = min(large, warps * (128 << 20)) // (sms * 64 * 512) * (sms * 64 * 512)
        block = min(warps, 32) * 32
        seconds = stream("read_1", sms * max(1, warps // 32), block, part)
        table.add(
            f"hbm_read_{warps}warps", part / seconds / 1e9, "GB/s",
            f"{warps} warps on an SM, 512 bytes of each in flight",
        )  # fmt: skip
    far = 4 * GIB // sms // 32768 * 32768
    for nbytes, stages in ((1024, 1), (16384, 1), (16384, 4), (32768, 4), (8192, 8), (2048, 8)):
        for where, room, apart in (("l2", 8 << 20, 65536), ("hbm", 4 * GIB, far)):
            turns = 256 if stages > 1 else 64
            before = flush if where == "hbm" else None
            cycles = device.cycles(
                "tma", 32, turns, (big, POINTER), (room, WIDE), (apart, WIDE), (nbytes, INT),
                (stages, INT), smem=nbytes * stages + 1024, before=before,
            )  # fmt: skip
            name = f"tma_{where}_{nbytes}x{stages}"
            if stages == 1:
                table.add(f"{name}_trip", cycles / turns, "cycles", "bytes, waited for")
            else:
                table.add(name, turns * nbytes / cycles, "bytes/cycle/SM", "bytes x stages")
    check(driver.cuMemFree(big))


def barriers(device, table):
    for warps in (1, 4, 8, 16, 32):
        cycles = device.cycles("barrier", 32 * warps, 512)
        table.add(f"barrier_{warps}warps", cycles / 512, "cycles", "bar.sync in a loop")
    for warps in (1, 4, 8):
        cycles = device.cycles("mbarrier_trip", 32 * warps, 512)
        table.add(f"mbarrier_{warps}warps", cycles / 512, "cycles", "arrive of all threads, wait")


def launches(device, table):
    driver = device.driver
    out = (int(device.out), POINTER)

    def graph_of(count, blocks, threads):
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        check(driver.cuStreamBeginCapture(device.stream, mode))
        for _ in range(count):
            device.launch("nothing", blocks, threads, out)
        graph = check(driver.cuStreamEndCapture(device.stream))
        return check(driver.cuGraphInstantiate(graph, 0))

    def each(count, blocks, threads):
        made = graph_of(count, blocks, threads)
        seconds = device.seconds(lambda: check(driver.cuGraphLaunch(made, device.stream)))
        return seconds / count

    one = device.seconds(lambda: device.launch("nothing", 1, 32, out))
    table.add("launch_between_events", one * 1e6, "us", "an empty kernel of one block")
    out_args = (out, (4096, INT), (0, INT))

    def queued(count):
        def launches():
            device.launch("ffma_8", device.processors, 1024, *out_args)  # the host gets ahead
            for _ in range(count):
                device.launch("nothing", 1, 32, out)

        return device.seconds(launches)

    table.add("launch_queued", (queued(120) - queued(20)) / 100 * 1e6, "us", "in a busy stream")
    table.add("launch_in_graph", each(200, 1, 32) * 1e6, "us", "each of 200 in a graph")
    for threads in (128, 256, 512, 1024):
        few, many = (each(20, device.processors * n, threads) for n in (8, 136))
        ns = (many - few) / (128 * device.processors) * 1e9
        table.add(f"block_start_{threads}", ns, "ns/block, whole GPU", f"empty, {threads} threads")


def clock(device, table):
    turns = 4096
    cycles = device.cycles("ffma_8", 1024, turns)
    count = device.processors
    out = (int(device.out), POINTER)

    def long():
        device.launch("ffma_8", count, 1024, out, (turns, INT), (0, INT))

    table.add("clock", cycles / device.seconds(long) / 1e6, "MHz", "cycles in the time of a launch")


def sustained(device, table):
    """Tensor cores for a tenth of a second, timed by events: power lowers the clock."""
    out = (int(device.out), POINTER)

    def wgmma():
        more = (out, (20000, INT), (0, INT), (16, INT))
        device.launch("wgmma_256", device.processors, 256, *more, smem=98304)

    done = device.processors * 2 * 20000 * 16 * 2 * 64 * 256 * 16
    rate = done / device.seconds(wgmma, 3) / 1e12
    table.add("wgmma_sustained", rate, "TFLOP/s", "m64n256k16 f16, two warpgroups, long")

    def mma():
        device.launch("mma_8", device.processors, 512, out, (100000, INT), (0, INT))

    done = device.processors * 16 * 100000 * 4 * 8 * 2 * 16 * 8 * 16
    rate = done / device.seconds(mma, 3) / 1e12
    table.add("mma_sustained", rate, "TFLOP/s", "m16n8k16 f16, 16 warps, long")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--check", metavar="ARCH", help="only compile the kernels for ARCH")
    options = parser.parse_args()
    if options.check:
        print(f"{len(compiled(options.check))} bytes of machine code")
        return 0
    device, table = Device(), Table()
    failed = 0
    for part in (clock, arithmetic, shared, tensor_cores, barriers, launches, sustained, memory):
        try:
            part(device, table)
        except RuntimeError as error:
            failed += 1
            print(f"{part.__name__} failed: {error}")
    if options.out:
        facts = {
            "device": device.name, "arch": device.arch, "multiprocessors": device.processors,
            "l2_bytes": device.l2_bytes, "program": "bench/gpu/units.py", "units": table.rows,
        }  # fmt: skip
        Path(options.out).write_text(json.dumps(facts, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
