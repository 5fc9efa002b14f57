"""Stand-ins for names that are not offered: imports, annotations, subclasses work; use does not."""

import pytest

from basedsl import DSLError
from basedsl_cute.pipeline import ClcState


def test_a_class_can_be_derived_and_not_made():
    class Own(ClcState):
        stages: int = 2

        def advance(self, by: ClcState | None = ClcState.DEFAULT) -> int:
            return self.stages

    assert Own.stages == 2
    with pytest.raises(DSLError, match="ClcState is not offered: no public"):
        Own()


def test_use_is_an_error_that_says_why():
    for use in (ClcState, ClcState.create, ClcState.MODE.__bool__):
        with pytest.raises(DSLError, match="ClcState is not offered: no public"):
            use()
