"""One interface to the array libraries of operands: PyTorch, CuPy and NumPy.

`library(x)` gives the `ArrayLibrary` of an array. Other arrays with `__dlpack__` are not supported,
since there is no common way to make them.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from basedsl import ArrayRecord, DSLTypeError, Numeric, with_article
from basedsl_cute.arrays.describe import tensor_describer

_ALIGNMENT = 32  # bytes: kernels depend on addresses modulo this


class ArrayLibrary(ABC):
    """The operations that `ops` needs of an array library; one subclass for each library."""

    # True if the library may change the types of operands, see `ops.torch_autocast`.
    is_autocasting: Callable[[], bool] = staticmethod(lambda: False)

    @abstractmethod
    def key(self, x: Any) -> Hashable:
        """A cache key of everything that a kernel for the array depends on: extents, strides,
        element type, address modulo 32, device. Raises DSLTypeError for an array that needs a
        gradient while gradients are recorded.
        """

    def described(self, arrays: tuple[Any, ...]) -> tuple[Hashable, list[int]] | None:
        """The key of all arrays of a call, and the addresses of those that are there: some may be
        None, or numbers. None where something is no array of this library, or has no memory.
        """
        keys: list[Hashable] = []
        addresses = []
        for x in arrays:
            if x is None or type(x) in _NUMBERS:
                keys.append((type(x), x))
            elif known_libraries.get(type(x)) is self:
                keys.append(self.key(x))
                addresses.append(self.address(x))
            else:
                return None
        return tuple(keys), addresses

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        """A new uninitialised row-major array on the device of `like`; `dtype` is the library's."""

    def empty_like(self, x: Any) -> Any:
        """A new uninitialised array with the extents, the type and the device of `x`, row-major if
        `x` is.
        """
        return self.empty(x.shape, x.dtype, x)

    @abstractmethod
    def dtype(self, kind: type[Numeric]) -> Any:
        """The library's dtype for a numeric class; DSLTypeError where it has none."""

    @abstractmethod
    def view(self, x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """A view with other extents and strides (in elements) that starts at the same address."""

    @abstractmethod
    def address(self, x: Any) -> int:
        """The address of the first element."""

    @abstractmethod
    def compact(self, x: Any) -> Any:
        """The same elements row-major: a copy, unless they are so already."""

    def spaced(self, x: Any, pitch: int) -> Any:
        """A row-major copy whose rows are `pitch` elements apart; the padding is uninitialised."""
        columns = x.shape[-1]
        made = self.empty((*x.shape[:-1], pitch), x.dtype, x)
        made[..., :columns] = x
        return made

    def records(self, *arrays: Any) -> bool:
        """True if a call is to be recorded: the library computes gradients of one of the arrays
        (None for one that is left out), or compiles the caller. Raises DSLTypeError for one of a
        transform of the library's that a call takes no part in.
        """
        return False

    def is_on_host(self, x: Any) -> bool:
        """True if the host can read the elements of an array at once."""
        return False

    def elements(self, x: Any) -> np.ndarray | None:
        """The elements of an array that is on the host, else None."""
        return None

    def stream(self, x: Any) -> int:
        """The CUstream that the library currently uses for the device of `x`; 0 for the CPU."""
        return 0


class _NumPy(ArrayLibrary):
    def key(self, x: Any) -> Hashable:
        address = x.__array_interface__["data"][0]
        return x.shape, x.strides, x.dtype, address & (_ALIGNMENT - 1), x.flags.writeable

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        return np.empty(shape, dtype)

    def dtype(self, kind: type[Numeric]) -> Any:
        return np.dtype(kind.numpy_dtype)

    def view(self, x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        in_bytes = [d * x.itemsize for d in strides]
        return np.lib.stride_tricks.as_strided(x, shape, in_bytes)

    def address(self, x: Any) -> int:
        return int(x.__array_interface__["data"][0])

    def compact(self, x: Any) -> Any:
        return np.ascontiguousarray(x)

    def is_on_host(self, x: Any) -> bool:
        return True

    def elements(self, x: Any) -> np.ndarray | None:
        found: np.ndarray = x
        return found


class _CuPy(ArrayLibrary):
    def __init__(self) -> None:
        self.cupy = sys.modules["cupy"]

    def key(self, x: Any) -> Hashable:
        return x.shape, x.strides, x.dtype, x.data.ptr & (_ALIGNMENT - 1), x.data.device_id

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        return self.cupy.empty(shape, dtype)

    def dtype(self, kind: type[Numeric]) -> Any:
        return np.dtype(kind.numpy_dtype)

    def view(self, x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        in_bytes = [d * x.itemsize for d in strides]
        return self.cupy.lib.stride_tricks.as_strided(x, shape, in_bytes)

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def compact(self, x: Any) -> Any:
        return self.cupy.ascontiguousarray(x)

    def stream(self, x: Any) -> int:
        return int(self.cupy.cuda.get_current_stream().ptr)


class _Torch(ArrayLibrary):
    def __init__(self) -> None:
        self.torch = torch = sys.modules["torch"]
        # The handle alone costs a tenth of a stream object; older and newer versions may lack it.
        self._handle = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self._empty_like = torch.empty_like
        self._is_grad_enabled = torch.is_grad_enabled
        self._is_compiling = torch.compiler.is_compiling
        # The short way to ask for all devices; `ops.torch_autocast` asks for that of a tensor.
        self.is_autocasting = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)
        functorch = getattr(torch._C, "_functorch", None)
        self._transforms = getattr(functorch, "peek_interpreter_stack", lambda: None)
        self._is_wrapped = getattr(functorch, "is_functorch_wrapped_tensor", lambda x: True)
        self._forward_mode = torch.autograd.forward_ad
        self._describe: Any = None  # made later: a compiler may trace this

    def key(self, x: Any) -> Hashable:
        found = self.described((x,))
        if found is None:  # no memory, which those say who read it
            return x.shape, x.stride(), x.dtype, x.get_device()
        return found[0]

    def described(self, arrays: tuple[Any, ...]) -> tuple[Hashable, list[int]] | None:
        if self._describe is None:
            self._describe = tensor_describer(self.torch, _ALIGNMENT) or (lambda arrays: None)
        found: tuple[Hashable, list[int]] | None = self._describe(arrays)
        if found is not None:
            return found
        keys: list[Hashable] = []
        addresses: list[int] = []
        for x in arrays:
            if x is None:
                keys.append(None)
                continue
            if known_libraries.get(type(x)) is not self:
                if type(x) not in _NUMBERS:
                    return None
                keys.append((type(x), x))
                continue
            if x.requires_grad and self._is_grad_enabled():
                raise DSLTypeError(
                    "this computes no gradients, and an operand requires one",
                    hint="call it under torch.no_grad(), or pass x.detach()",
                )
            try:
                address, shape = x.data_ptr(), x.shape
            except RuntimeError:  # of sparse and nested tensors
                self._check_unwrapped(x)
                ArrayRecord.of(x)  # says what has no elements at strides
                raise
            if not address and x.numel():
                return None
            addresses.append(address)
            bits = address & (_ALIGNMENT - 1)
            keys.append((shape, x.stride(), x.dtype, bits, x.get_device(), x.is_neg()))
        return tuple(keys), addresses

    def records(self, *arrays: Any) -> bool:
        if self._is_compiling():
            return True
        if self._transforms() is not None:
            for x in arrays:
                self._check_unwrapped(x)
        if self._forward_mode._current_level >= 0 and any(map(self._has_tangent, arrays)):
            raise DSLTypeError(
                "this computes no tangents, and an operand has one",
                hint="call backward: there are no derivatives in forward mode",
            )
        if self._is_grad_enabled():
            for x in arrays:
                if x is not None and getattr(x, "requires_grad", False):
                    return True
        return False

    def _check_unwrapped(self, x: Any) -> None:
        """Raise DSLTypeError for a tensor that a transform has made, which has no memory."""
        if isinstance(x, self.torch.Tensor) and self._is_wrapped(x):
            raise DSLTypeError(
                "this takes no part in transforms of torch.func (grad, vmap, jvp ..)",
                hint="for vmap, make the mapped mode one of the batches; for gradients, call "
                "backward",
            )

    def _has_tangent(self, x: Any) -> bool:
        is_tensor = isinstance(x, self.torch.Tensor)
        return is_tensor and self._forward_mode.unpack_dual(x).tangent is not None

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        # A third of the time that `torch.empty` takes with a dtype and a device.
        return like.new_empty(shape) if dtype is like.dtype else like.new_empty(shape, dtype=dtype)

    def empty_like(self, x: Any) -> Any:
        return self._empty_like(x)  # two thirds of the time that `new_empty` takes

    def dtype(self, kind: type[Numeric]) -> Any:
        name = _TORCH_NAMES.get(kind.__name__, kind.__name__.lower())
        found = getattr(self.torch, name, None)
        if found is None:
            raise DSLTypeError(f"PyTorch has no elements of {kind.__name__}")
        return found

    def view(self, x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        return x.as_strided(shape, strides)

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def compact(self, x: Any) -> Any:
        return x.contiguous()

    def is_on_host(self, x: Any) -> bool:
        return bool(x.is_cpu)

    def elements(self, x: Any) -> np.ndarray | None:
        return x.numpy() if self.is_on_host(x) else None

    def stream(self, x: Any) -> int:
        if not x.is_cuda:
            return 0
        if self._handle is not None:
            return int(self._handle(x.get_device()))
        return int(self.torch.cuda.current_stream(x.device).cuda_stream)


_TORCH_NAMES = {
    "Float8E4M3FN": "float8_e4m3fn",
    "Float8E5M2": "float8_e5m2",
}


def library(x: Any, operation: str = "matmul") -> ArrayLibrary:
    """The library of an array; DSLTypeError for any other object, naming the operation."""
    found = known_libraries.get(type(x))
    if found is None:
        made = _library_class(type(x), operation)
        same = [known for known in known_libraries.values() if type(known) is made]
        found = known_libraries[type(x)] = same[0] if same else made()
    return found


_NUMBERS = (int, float)
known_libraries: dict[type, ArrayLibrary] = {}  # by the class of an array


def _library_class(kind: Any, operation: str) -> type[ArrayLibrary]:
    if issubclass(kind, np.ndarray):
        if issubclass(kind, np.ma.MaskedArray):
            raise DSLTypeError(
                f"{operation} takes no masked array: it would not see the mask",
                hint="pass x.filled(...), or x.data and x.mask",
            )
        return _NumPy
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):
        return _Torch
    if kind.__name__ == "ndarray" and kind.__module__.split(".")[0] == "cupy":
        return _CuPy
    if kind.__module__.split(".")[0] in ("jax", "jaxlib"):  # beside others
        raise DSLTypeError(
            f"{operation}: an array of JAX beside those of another library",
            hint="pass arrays of one library: np.asarray(x), torch.from_dlpack(x) ..",
        )
    hint = "wrap it without a copy: torch.from_dlpack(x) or cupy.from_dlpack(x)"
    if not hasattr(kind, "__dlpack__"):
        hint = "make an array of it: np.asarray(x), torch.tensor(x) .."
    raise DSLTypeError(
        f"{operation} takes arrays of PyTorch, CuPy, JAX or NumPy, not {with_article(kind)}",
        hint=hint,
    )
