"""Executor that launches on the CPU simulator, in the memory of the call's own arrays."""

from __future__ import annotations

import ctypes
import pickle
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from basedsl import (
    ArgumentType,
    DSLRuntimeError,
    Int64,
    Invoker,
    NativeEntryPoint,
    Results,
    Stages,
    Uint64,
    native_invoker,
    slot_format,
)
from basedsl_cute.arrays.address_owner import owners_of
from basedsl_cute.device.launch_checks import (
    COOPERATIVE,
    PDL,
    LaunchParameters,
    preferred_cluster,
    python_launcher,
    report_failure,
)
from basedsl_cute.dialect.attributes import BYVAL
from basedsl_cute.dynamo import unseen_by_dynamo
from basedsl_cute.executors.arguments import raise_failure, tensors
from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.hardware.targets import SIM, TARGETS
from basedsl_cute.hardware.tensor_map_format import BYTES
from basedsl_cute.sim import Memory, SimOptions
from basedsl_cute.sim.kernel import SimKernel
from basedsl_cute.sim.machine.memory import reachable_arrays
from basedsl_cute.sim.translate.types import FloatType, dtype_of, parse_type

TENSOR_MAP = f"{BYVAL}!llvm.array<{BYTES} x i8>"
_C_TYPES: dict[str, Any] = {
    "i1": ctypes.c_uint8,
    "i4": ctypes.c_uint8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "index": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


def simulator_executor(
    stages: Stages,
    symbol: str,
    arguments: Sequence[ArgumentType],
    results: Results,
    settings: Any,
) -> Callable[[Sequence[Any]], Any]:
    """Make a callable on packed arguments. Each call may touch its own arrays, those of the callers
    whose addresses lie in an argument, and those that `reachable` names. Raises DSLRuntimeError for
    a tensor on another device.
    """
    programs: dict[str, bytes] = pickle.loads(stages.binary("programs"))
    kernels: dict[str, SimKernel] = {}
    call = threading.local()
    reached = tensors(arguments)
    options = SimOptions.of(settings)

    def kernel(name: str) -> SimKernel:
        def record() -> Any:
            return pickle.loads(stages.binary("kernels"))[name]

        packed = programs.get(name)
        return SimKernel(record()) if packed is None else SimKernel.unpack(packed, record)

    def start(launch: LaunchParameters) -> None:
        name = launch.kernel.name
        if name not in kernels:
            kernels[name] = kernel(name)
        args = [_argument(launch, i, kind) for i, kind in enumerate(launch.kernel.arguments)]
        memory = call.memory
        if TENSOR_MAP in launch.kernel.arguments:
            memory = memory.copy()
        for i, kind in enumerate(launch.kernel.arguments):
            if kind == TENSOR_MAP:
                memory.add(args[i], BYTES, f"tensor map {i}", writable=False)
        kernels[name].launch(
            launch.grid,
            launch.block,
            args,
            memory=memory,
            dynamic_smem=launch.smem,
            options=options,
            cluster=launch.cluster or launch.kernel.cluster or (1, 1, 1),
            preferred=preferred_cluster(launch.flags),
            cooperative=bool(launch.flags & COOPERATIVE),
            dependent=bool(launch.flags & PDL),
            stream=launch.stream,
        )

    limits = LaunchLimits(smem=TARGETS[SIM].smem_per_block)
    symbols = python_launcher(pickle.loads(stages.binary("launches")), limits, start)
    native = native_invoker(
        stages.binary("object"), symbol, arguments, results, symbols, raise_failure=raise_failure
    )

    def memory_of(packed: Sequence[Any]) -> Memory:
        memory = Memory()
        for at, tensor in reached:
            low, high = tensor.byte_range(packed[at : at + len(tensor.storage)])
            held = memory.add(low, high - low, tensor.name, writable=tensor.writable)
            if tensor.dtype in (Int64, Uint64):
                for first, end in owners_of(held.raw.view(np.int64)):
                    memory.add(first, end - first, f"an array whose address is in {tensor.name}")
        for i, array in enumerate(reachable_arrays()):
            memory.add_array(array, f"reachable array {i}", writable=array.flags.writeable)
        return memory

    def invoke(packed: Sequence[Any]) -> Any:
        for _, tensor in reached:
            if tensor.device not in ("cpu", "any"):
                raise DSLRuntimeError(
                    f"a tensor is on {tensor.device}, and the simulator runs on the CPU",
                    hint="pass a NumPy array, or unset CUTE_DSL_ARCH=sim to run on the GPU",
                )
        outer = getattr(call, "memory", None)
        call.memory = memory_of(packed)
        try:
            return native(packed)
        finally:
            call.memory = outer

    # Calls whose arguments native code unpacks come by way of this function.
    slots = struct.Struct(slot_format([f for one in arguments for f in one.storage]))
    bytes_of = ctypes.c_char * slots.size
    entered: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native.native.address)

    def enter(address: int) -> None:
        outer = getattr(call, "memory", None)
        try:
            call.memory = memory_of(slots.unpack_from(bytes_of.from_address(address)))
            entered(address)
        except BaseException as error:  # raised by the code that called it
            report_failure(error)
        finally:
            call.memory = outer

    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(unseen_by_dynamo(enter))
    own = NativeEntryPoint(
        ctypes.cast(callback, ctypes.c_void_p).value or 0,
        failed=ctypes.c_int64(1),  # which says that a call may have failed
        on_failure=native.native.on_failure,
        keep=(native, callback, symbols),
    )
    return _SimulatorInvoker(invoke, own, symbols)


class _SimulatorInvoker(Invoker):
    def __init__(self, invoke: Any, native: NativeEntryPoint, symbols: dict[str, int]) -> None:
        self._invoke = invoke
        self.native = native
        self.symbols = symbols  # the callbacks live as long as the code

    def __call__(self, packed: Sequence[Any]) -> Any:
        return self._invoke(packed)


def _argument(launch: LaunchParameters, index: int, kind: str) -> Any:
    if kind.startswith(BYVAL):
        return launch.argument_address(index)
    if kind.startswith("!llvm.ptr"):
        return launch.argument(index, ctypes.c_uint64)
    c_type = _C_TYPES.get(kind)
    type_ = parse_type(kind)
    if c_type is None and isinstance(type_, FloatType):
        dtype = dtype_of(type_)
        data = ctypes.string_at(launch.argument_address(index), dtype.itemsize)
        return np.frombuffer(data, dtype)[0]
    if c_type is None:
        raise DSLRuntimeError(f"the simulator cannot take a kernel argument of type {kind}")
    value = launch.argument(index, c_type)
    if kind == "i4":  # a byte, with zeros above
        return ((int(value) & 15) ^ 8) - 8
    return value
