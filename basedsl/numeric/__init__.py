"""Numbers of fixed formats, for plain Python and for traced code.

    from basedsl.numeric import Float32, Int8

    Int8(100) + Int8(100)           # Int8(-56): integers wrap
    Int8(3) / 2                     # Float32(1.5)
    Float32(0.1).to(Int8)           # Int8(0)

In a traced function the same classes hold SSA values, and operators emit MLIR operations.

The modules in order, each using those before it: `formats` (one row per format), `protocols`, `kit`
(emitting ops), `conversion`, `types` (the classes), `promotion`, `literals`, `concrete` (operators
on Python numbers), `division`, `shifts`, `powers`, `comparisons` (operators as ops), `engine`,
`operators` (the table), `selection`, `rounding`, `mathematics`, `builtins`, `lane_kit` (the same on
vectors), `storage`.
"""

from basedsl.numeric.builtins import resolve
from basedsl.numeric.dynamic_text import DynamicText, joined, made_text, refuse_text
from basedsl.numeric.formats import Kind
from basedsl.numeric.kit import kit_of
from basedsl.numeric.lane_kit import lanes
from basedsl.numeric.literals import as_numeric
from basedsl.numeric.mathematics import elementary
from basedsl.numeric.not_static import not_static
from basedsl.numeric.number import Float, Integer, Numeric, NumericMeta, is_dynamic
from basedsl.numeric.operators import logical_not
from basedsl.numeric.promotion import join_types, promote, promote_types, promotion_table
from basedsl.numeric.python_class import ambiguous, is_ambiguous, python_class, type_of
from basedsl.numeric.selection import in_common_type, maximum, minimum, select
from basedsl.numeric.storage import from_storage
from basedsl.numeric.text_use import check_text
from basedsl.numeric.types import (
    TYPES,
    BFloat16,
    Boolean,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    TFloat32,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
    dtype,
    from_dlpack,
    from_numpy_dtype,
    mlir_type,
)

__all__ = [
    "TYPES",
    "BFloat16",
    "Boolean",
    "DynamicText",
    "Float",
    "Float4E2M1FN",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3",
    "Float8E4M3B11FNUZ",
    "Float8E4M3FN",
    "Float8E5M2",
    "Float8E8M0FNU",
    "Float16",
    "Float32",
    "Float64",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "Integer",
    "Kind",
    "Numeric",
    "NumericMeta",
    "TFloat32",
    "Uint4",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint128",
    "ambiguous",
    "as_numeric",
    "check_text",
    "dtype",
    "elementary",
    "from_dlpack",
    "from_numpy_dtype",
    "from_storage",
    "in_common_type",
    "is_ambiguous",
    "is_dynamic",
    "join_types",
    "joined",
    "kit_of",
    "lanes",
    "logical_not",
    "made_text",
    "maximum",
    "minimum",
    "mlir_type",
    "not_static",
    "promote",
    "promote_types",
    "promotion_table",
    "python_class",
    "refuse_text",
    "resolve",
    "select",
    "type_of",
]
