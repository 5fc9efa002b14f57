"""Every call of the driver, through cuda-python, to a libcuda in C that says what it is given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

# Handles are small numbers; a device's is 10 more than its number.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define SAY(...) dprintf(1, __VA_ARGS__)
typedef int R;
typedef void *P;
typedef uint64_t U;
typedef struct { unsigned grid[3], block[3], smem; P stream; unsigned *attrs, count; } Config;
R cuGetProcAddress_v2(const char *name, P *function, int version, U flags, int *status) {
  char newer[200];
  snprintf(newer, sizeof newer, "%s_v2", name);
  *function = dlsym(RTLD_DEFAULT, newer);
  if (!*function) *function = dlsym(RTLD_DEFAULT, name);
  if (status) *status = !*function;
  return 0;
}
R cuGetProcAddress(const char *name, P *function, int version, U flags) {
  return cuGetProcAddress_v2(name, function, version, flags, 0);
}
static P context;
R cuInit(unsigned flags) { return flags; }
R cuDriverGetVersion(int *v) { *v = 12040; return 0; }
R cuGetErrorString(R e, const char **s) { *s = e == 999 ? 0 : "words"; return e == 999; }
R cuDeviceGetCount(int *n) { *n = 2; return 0; }
R cuDeviceGet(int *d, int n) { *d = n + 10; return 0; }
R cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "GPU %d of %d", d, n); return 0; }
R cuDeviceGetAttribute(int *v, int a, int d) { *v = 100 * a + d; return 0; }
R cuDevicePrimaryCtxRetain(P *c, int d) { *c = (P)(U)(0x700 + d); return 0; }
R cuCtxGetCurrent(P *c) { *c = context; return 0; }
R cuCtxSetCurrent(P c) { context = c; SAY("context %p\n", c); return 0; }
R cuCtxGetDevice(int *d) { *d = (int)(U)context - 0x70a; return 0; }
R cuCtxSynchronize(void) { SAY("synchronize\n"); return 0; }
R cuLibraryLoadData(P *l, const char *data, int *o, P *v, unsigned n, P lo, P lv, unsigned ln) {
  SAY("load %s, %u options: %d, %d %lu; %u\n", data, n, o[0], o[1], (U)v[1], ln);
  if (!strcmp(data, "wrong")) { strcpy(v[0], "line 1\n"); return 218; }
  *l = (P)0x11;
  return 0;
}
R cuLibraryGetKernel(P *k, P l, const char *n) {
  SAY("kernel %s of %p\n", n, l); *k = (P)0x22; return 0;
}
R cuLibraryUnload(P l) { SAY("unload %p\n", l); return 0; }
R cuKernelGetAttribute(int *v, int a, P k, int d) {
  SAY("get %d %p %d\n", a, k, d); *v = a + 5; return 0;
}
R cuKernelSetAttribute(int a, int v, P k, int d) { SAY("set %d %d %p %d\n", a, v, k, d); return 0; }
R cuKernelGetFunction(P *f, P k) { *f = (P)0x33; return 0; }
R cuOccupancyMaxActiveClusters(int *n, P f, const Config *c) {
  SAY("clusters %p grid %u %u %u block %u %u %u smem %u stream %p", f, c->grid[0], c->grid[1],
      c->grid[2], c->block[0], c->block[1], c->block[2], c->smem, c->stream);
  SAY(" %u: %u is %u %u %u\n", c->count, c->attrs[0], c->attrs[2], c->attrs[3], c->attrs[4]);
  *n = 66;
  return 0;
}
R cuStreamCreate(P *s, unsigned f) { SAY("stream %u\n", f); *s = (P)0x44; return 0; }
R cuStreamSynchronize(P s) { SAY("synchronize stream %p\n", s); return 0; }
R cuStreamDestroy_v2(P s) { SAY("destroy stream %p\n", s); return 0; }
R cuEventCreate(P *e, unsigned f) {
  static U n = 0x55; SAY("event %u\n", f); *e = (P)n++; return 0;
}
R cuEventRecord(P e, P s) { SAY("record %p on %p\n", e, s); return 0; }
R cuEventSynchronize(P e) { SAY("synchronize event %p\n", e); return 0; }
R cuEventElapsedTime_v2(float *t, P a, P b) { SAY("from %p to %p\n", a, b); *t = 1.5; return 0; }
R cuEventDestroy_v2(P e) { SAY("destroy event %p\n", e); return 0; }
R cuMemAlloc_v2(U *a, size_t n) { SAY("allocate %zu\n", n); *a = 0xfedc000000000000; return 0; }
R cuMemFree_v2(U a) { SAY("free %lx\n", a); return 0; }
R cuMemcpyHtoD_v2(U a, const char *h, size_t n) {
  SAY("to %lx %zu %s\n", a, n, h);
  return n == 1 ? 700 : n == 2 ? 777777 : 0;
}
R cuMemcpyDtoH_v2(char *h, U a, size_t n) {
  SAY("from %lx %zu\n", a, n); strcpy(h, "read"); return 0;
}
R cuStreamBeginCapture_v2(P s, int m) { SAY("capture %p %d\n", s, m); return 0; }
R cuStreamEndCapture(P s, P *g) { SAY("captured %p\n", s); *g = (P)0x66; return 0; }
R cuGraphInstantiateWithFlags(P *x, P g, U f) {
  SAY("graph %p %lu\n", g, f); *x = (P)0x77; return 0;
}
R cuGraphDestroy(P g) { SAY("destroy graph %p\n", g); return 0; }
R cuGraphLaunch(P x, P s) { SAY("launch %p on %p\n", x, s); return 0; }
R cuGraphExecDestroy(P x) { SAY("destroy executable %p\n", x); return 0; }
R cuLaunchKernelEx(P config, P function, P args, P extra) { return 4321; }
"""

PROGRAM = """
import ctypes
from basedsl.errors import DSLError
from basedsl_cute.device import driver
from basedsl_cute.device.graph import Graph

def say(*values):
    print(*values, flush=True)

def fails(work, *arguments):
    try:
        say("no error:", work(*arguments))
    except DSLError as error:
        say(type(error).__name__, "|", error.message.replace("\\n", " | "))

say(driver.is_available(), driver.driver_version(), driver.current_device())
say(driver.device(1))
driver.ensure_context()
say(driver.give_context(), driver.current_device(), driver.capability_or_none())
driver.set_device(1)
driver.synchronize()
say(driver.describe_error(719), driver.describe_error(999))
fails(driver.Library, "wrong")
library = driver.Library(b"bytes\\0")
kernel = library.kernel("k")
say(kernel.handle, kernel.attribute("registers"), kernel.attribute("static_smem", 0))
kernel.set_attribute(driver.MAX_DYNAMIC_SMEM, 5000)
say(kernel.active_clusters(4, 128, 1000))
library.unload()
library.unload()
stream, first, last = driver.CudaStream(), driver.DriverEvent(), driver.DriverEvent()
first.record()
last.record(stream)
last.synchronize()
say(last.milliseconds_since(first))
stream.synchronize()
first.destroy()
memory = driver.allocate(2**40)
host = ctypes.create_string_buffer(b"bytes of the host")
driver.copy_to_device(memory, ctypes.addressof(host), 7)
driver.copy_to_host(ctypes.addressof(host), memory + 8, 6)
say(host.value.decode())
fails(driver.copy_to_device, memory, ctypes.addressof(host), 1)
fails(driver.copy_to_device, memory, ctypes.addressof(host), 2)
driver.free(memory)
with Graph.capture(stream, lambda: say("work")) as graph:
    graph.launch(stream)
stream.destroy()
say(ctypes.CFUNCTYPE(ctypes.c_int)(driver.address_of("cuLaunchKernelEx"))())
fails(driver.address_of, "cuNothing")
fails(driver.call, "cuMemAllocManaged", 8, 1)
"""

SAID = """
True 12040 0
Device(number=1, name='GPU 11 of 256', capability=(7511, 7611), multiprocessors=1611, \
max_threads_per_block=111, max_block=(211, 311, 411), max_grid=(511, 611, 711), \
smem_per_block=9711, smem_per_multiprocessor=8111, l2_cache=3811)
context 0x70a
False 0 (7510, 7610)
context 0x70b
synchronize
('CUDA_ERROR_LAUNCH_FAILED', 'words') ('CUDA_ERROR_UNKNOWN', 'error 999')
load wrong, 2 options: 5, 6 8192; 0
DSLCudaRuntimeError | loading a kernel: cuLibraryLoadData: CUDA_ERROR_INVALID_PTX, words | line 1
load bytes, 2 options: 5, 6 8192; 0
kernel k of 0x11
get 4 0x22 11
get 1 0x22 10
34 9 6
set 8 5000 0x22 11
clusters 0x33 grid 4 1611 1 block 128 1 1 smem 1000 stream (nil) 1: 4 is 4 1 1
66
unload 0x11
stream 1
event 0
event 0
record 0x55 on (nil)
record 0x56 on 0x44
synchronize event 0x56
from 0x55 to 0x56
1.5
synchronize stream 0x44
destroy event 0x55
allocate 1099511627776
to fedc000000000000 7 bytes of the host
from fedc000000000008 6
read
to fedc000000000000 1 read
DSLCudaRuntimeError | cuMemcpyHtoD: CUDA_ERROR_ILLEGAL_ADDRESS, words
to fedc000000000000 2 read
DSLRuntimeError | cuda-bindings does not fit the driver, in cuMemcpyHtoD: 777777
free fedc000000000000
capture 0x44 1
work
captured 0x44
graph 0x66 0
destroy graph 0x66
launch 0x77 on 0x44
synchronize
destroy executable 0x77
destroy stream 0x44
4321
DSLRuntimeError | the driver has no cuNothing
DSLRuntimeError | cuda-bindings does not fit the driver, in cuMemAllocManaged
"""


def test_each_call_reaches_the_library(tmp_path):
    cc = shutil.which("cc")
    if cc is None or sys.platform != "linux":
        pytest.skip("no C compiler")
    (tmp_path / "libcuda.c").write_text(LIBRARY)
    command = [cc, "-shared", "-fPIC", "libcuda.c", "-o", "libcuda.so.1", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # How the bindings say the rest of a line differs from version to version.
    said = [line.split(": function")[0].split(": Function")[0] for line in done.stdout.splitlines()]
    said = [line.replace(" is not a valid CUresult", "") for line in said]
    assert said == SAID.strip().splitlines()
