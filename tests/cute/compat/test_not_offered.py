"""Stand-ins for names that are not offered: imports, annotations, subclasses work; use does not."""

import pytest

from basedsl import DSLError
from basedsl_cute.pipeline import PipelineTmaUmma


def test_a_class_can_be_derived_and_not_made():
    class Own(PipelineTmaUmma):
        stages: int = 2

        def advance(self, by: PipelineTmaUmma | None = PipelineTmaUmma.DEFAULT) -> int:
            return self.stages

    assert Own.stages == 2
    with pytest.raises(DSLError, match="PipelineTmaUmma is for data-center Blackwell"):
        Own()


def test_use_is_an_error_that_says_why():
    for use in (PipelineTmaUmma, PipelineTmaUmma.create, PipelineTmaUmma.MODE.__bool__):
        with pytest.raises(DSLError, match="PipelineTmaUmma is for data-center Blackwell"):
            use()
