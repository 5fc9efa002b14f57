"""`utils.distributed`: for Blackwell GPUs, not offered; every name is an error."""

from typing import TYPE_CHECKING

from basedsl_cute.hardware.unsupported import unsupported_names

if not TYPE_CHECKING:
    __getattr__ = unsupported_names(__name__)
