"""`experimental.cuda`: its names can be imported; using one is an error that says what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from basedsl_cute.hardware.unsupported import unsupported_names

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names("basedsl_cute.experimental.cuda")
