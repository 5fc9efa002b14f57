"""Classes for conformance programs: values with parts, changed in place or made anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple


class Point:
    """An ordinary class whose methods change it."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x = x
        self.y = y

    def move(self, by: Any) -> None:
        self.x = (self.x + by) % 1009
        self.y = (self.y - by) % 1009

    def flip(self) -> None:
        self.x, self.y = self.y, self.x

    def total(self) -> Any:
        return self.x + self.y


class Counter:
    """An object that holds an object and a tuple."""

    def __init__(self, count: Any) -> None:
        self.count = count
        self.point = Point(count, 1)
        self.recent = (0, count)

    def tick(self, by: Any) -> None:
        self.recent = (self.count, self.recent[0])
        self.count = (self.count + by) % 1009
        self.point.move(1)


@dataclass(frozen=True)
class Frozen:
    """A frozen dataclass: changed by making another one."""

    low: Any
    high: Any

    def moved(self, by: Any) -> Frozen:
        return replace(self, low=(self.low + by) % 1009, high=(self.high + by) % 1009)


class Pair(NamedTuple):
    """A NamedTuple."""

    first: Any
    second: Any


class OutOfRange(Exception):
    """A user's own exception, with two arguments."""

    def __init__(self, text: str, number: int = 0) -> None:
        super().__init__(text, number)
        self.number = number
