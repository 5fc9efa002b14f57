"""`import basedsl_cute.cute as cute`: another path of `basedsl_cute` and its public modules."""

from typing import TYPE_CHECKING

from basedsl_cute.compat.module_aliases import register_alias

if TYPE_CHECKING:
    from basedsl_cute.public import *  # noqa: F403

register_alias(__name__, "basedsl_cute")
