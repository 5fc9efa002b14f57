"""`utils.distributed`: for Blackwell GPUs, not offered; every name is an error."""

from typing import TYPE_CHECKING

from basedsl_cute.hardware.unsupported import absent

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
