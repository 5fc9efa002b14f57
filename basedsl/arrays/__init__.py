"""Arrays of other libraries: read as records without copying, and passed as arguments."""

from basedsl.arrays.array_argument import ArrayArgument
from basedsl.arrays.array_record import ArrayRecord, UnreadableArray

__all__ = ["ArrayArgument", "ArrayRecord", "UnreadableArray"]
