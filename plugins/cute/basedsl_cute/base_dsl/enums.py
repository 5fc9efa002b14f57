"""`base_dsl.enums`: has `Arch`."""

from basedsl_cute.hardware.arch_enum import Arch

__all__ = ["Arch"]
