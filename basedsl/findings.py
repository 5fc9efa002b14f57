"""Findings of `basedsl doctor`: what is installed and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "missing"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for, called `name`. `state` is "ok", "optional" (missing, and
    needed for some uses only) or "missing" (nothing works without it); `detail` is the version and
    place, or what does not work without it; `todo` is what to do about it.
    """

    name: str
    state: State
    detail: str = ""
    todo: str = ""
