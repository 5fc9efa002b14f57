"""Parameters of a translated kernel: conversion of Python values to them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


class KernelParameter:
    """One parameter. `text` is its type for messages, `dtype` the NumPy dtype of its elements,
    `width` the bits of an integer, `shape` that of a vector, and `fields` those of an aggregate.
    """

    def __init__(
        self,
        text: str,
        dtype: Any = None,
        *,
        width: int = 0,
        is_pointer: bool = False,
        shape: tuple[int, ...] | None = None,
        fields: tuple[KernelParameter, ...] | None = None,
    ) -> None:
        self.text = text
        self.dtype = dtype
        self.width = width
        self.is_pointer = is_pointer
        self.shape = shape
        self.fields = fields

    def __str__(self) -> str:
        return self.text

    def convert(self, value: Any) -> Any:
        """Convert `value` to what generated code takes: a NumPy scalar, for a vector an array
        `(n, ..., 1)`, for an aggregate a tuple. Raises TypeError, ValueError or OverflowError.
        """
        if self.fields is not None:
            return tuple(field.convert(v) for v, field in zip(value, self.fields, strict=True))
        if self.shape is not None:
            return np.asarray(value, self.dtype).reshape(*self.shape, 1)
        if self.is_pointer:
            return self.dtype.type(operator.index(value))
        if self.width > 1:
            number = operator.index(value)
            half = 1 << (self.width - 1)
            if not -half <= number < 2 * half:
                raise OverflowError(number)
            return self.dtype.type((number + half) % (2 * half) - half)
        return self.dtype.type(value)
