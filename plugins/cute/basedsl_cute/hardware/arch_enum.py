"""`Arch`: the architectures of GPUs as an ordered enumeration, for programs that ask for ranges."""

from __future__ import annotations

import enum
from typing import Any

from basedsl import DSLError
from basedsl_cute.hardware.targets import Target


class Arch(enum.Enum):
    """An architecture, such as `Arch.sm_90a`: (major, minor, variant).

    Members are ordered by compute capability, then "" < "a" < "f".

    >>> Arch.sm_80 <= Arch.sm_89 < Arch.sm_90a
    True
    """

    sm_75 = (7, 5, "")
    sm_80 = (8, 0, "")
    sm_86 = (8, 6, "")
    sm_87 = (8, 7, "")
    sm_89 = (8, 9, "")
    sm_90 = (9, 0, "")
    sm_90a = (9, 0, "a")
    sm_100 = (10, 0, "")
    sm_100a = (10, 0, "a")
    sm_100f = (10, 0, "f")
    sm_101 = (10, 1, "")
    sm_101a = (10, 1, "a")
    sm_101f = (10, 1, "f")
    sm_103 = (10, 3, "")
    sm_103a = (10, 3, "a")
    sm_103f = (10, 3, "f")
    sm_110 = (11, 0, "")
    sm_110a = (11, 0, "a")
    sm_110f = (11, 0, "f")
    sm_120 = (12, 0, "")
    sm_120a = (12, 0, "a")
    sm_120f = (12, 0, "f")
    sm_121 = (12, 1, "")
    sm_121a = (12, 1, "a")
    sm_121f = (12, 1, "f")

    @property
    def major(self) -> int:
        """The major number of the compute capability."""
        return self.value[0]

    @property
    def minor(self) -> int:
        """The minor number of the compute capability."""
        return self.value[1]

    @property
    def suffix(self) -> str:
        """The end of the name: "a" for one architecture's own code, "f" for its family's, or ""."""
        return self.value[2]

    def is_family_of(self, other: Arch) -> bool:
        """Return True if code for the family of `other` runs here: the same major capability, from
        its minor one on.
        """
        return self.major == other.major and self.minor >= other.minor

    @classmethod
    def from_string(cls, name: str) -> Arch:
        """Return the member called `name`, such as "sm_90a"; DSLError if there is none."""
        found = cls.__members__.get(name)
        if found is None:
            raise DSLError(f"{name!r} is no architecture; there are {', '.join(cls.__members__)}")
        return found

    def __lt__(self, other: Any) -> bool:
        return self.value < other.value if isinstance(other, Arch) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self.value <= other.value if isinstance(other, Arch) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return self.value > other.value if isinstance(other, Arch) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self.value >= other.value if isinstance(other, Arch) else NotImplemented

    def __str__(self) -> str:
        return self.name


def arch_of(target: Target) -> Arch:
    """Return the architecture of a target; for the simulator sm_90a, which it stands for."""
    return Arch[target.name] if target.is_gpu else Arch.sm_90a
