"""Numeric classes compared with element types of array libraries."""

import numpy as np
import pytest

from basedsl import DSLTypeError, Float32, Int8


@pytest.mark.parametrize("other", [np.float32, np.dtype("float32"), np.int8])
def test_an_element_type_of_numpy_is_no_numeric_class(other):
    with pytest.raises(DSLTypeError, match="Float32 is compared with") as caught:
        _ = Float32 == other
    assert "compare with Float32 itself" in caught.value.hint
    with pytest.raises(DSLTypeError):
        _ = Float32 != other


def test_classes_are_equal_to_themselves_alone():
    assert Float32 == Float32
    assert Float32 != Int8
    assert Float32 != 3
    assert {Float32: 1, Int8: 2}[Int8] == 2
    assert Float32 in (Int8, Float32)
