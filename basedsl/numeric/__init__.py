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

from basedsl.numeric.builtins import resolve as resolve
from basedsl.numeric.dynamic_text import DynamicText as DynamicText
from basedsl.numeric.dynamic_text import ask_for_programs as ask_for_programs
from basedsl.numeric.dynamic_text import joined as joined
from basedsl.numeric.dynamic_text import made_text as made_text
from basedsl.numeric.dynamic_text import refuse_text as refuse_text
from basedsl.numeric.formats import Kind as Kind
from basedsl.numeric.kit import kit_of as kit_of
from basedsl.numeric.lane_kit import lanes as lanes
from basedsl.numeric.literals import as_numeric as as_numeric
from basedsl.numeric.mathematics import elementary as elementary
from basedsl.numeric.not_static import not_static as not_static
from basedsl.numeric.number import Float as Float
from basedsl.numeric.number import Integer as Integer
from basedsl.numeric.number import Numeric as Numeric
from basedsl.numeric.number import NumericMeta as NumericMeta
from basedsl.numeric.number import is_dynamic as is_dynamic
from basedsl.numeric.operators import logical_not as logical_not
from basedsl.numeric.promotion import join_types as join_types
from basedsl.numeric.promotion import promote as promote
from basedsl.numeric.promotion import promote_types as promote_types
from basedsl.numeric.promotion import promotion_table as promotion_table
from basedsl.numeric.python_class import ambiguous as ambiguous
from basedsl.numeric.python_class import is_ambiguous as is_ambiguous
from basedsl.numeric.python_class import own_classes_only as own_classes_only
from basedsl.numeric.python_class import python_class as python_class
from basedsl.numeric.python_class import show_own_classes as show_own_classes
from basedsl.numeric.python_class import type_of as type_of
from basedsl.numeric.selection import in_common_type as in_common_type
from basedsl.numeric.selection import maximum as maximum
from basedsl.numeric.selection import minimum as minimum
from basedsl.numeric.selection import select as select
from basedsl.numeric.storage import from_storage as from_storage
from basedsl.numeric.text_use import check_text as check_text
from basedsl.numeric.types import *  # noqa: F403
