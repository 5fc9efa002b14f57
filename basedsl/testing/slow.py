"""Parameters of tests of which some are slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def slow_but(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """Return the parameters of a test, with pytest's mark `slow` on all but the quick ones. A case
    that is a tuple has a value for each argument.
    """
    import pytest  # which the core itself does without

    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in quick else pytest.mark.slow,
        )
        for case in cases
    ]
