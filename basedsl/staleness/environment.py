"""The environment variables as they were at one time."""

from __future__ import annotations

import os

from basedsl.native_call import object_layout
from basedsl.native_call.conditions import CALL, ITEM, WORD, Row

_ENVIRON = "environ"


class Environment:
    """`os.environ` as it was at one time."""

    def __init__(self) -> None:
        self._owner = os.environ
        self._table = object_layout.environment_table()
        self._offset = None if self._table is None else object_layout.dict_version_offset()
        if self._offset is not None:
            self._at = id(self._table) + self._offset
            self._word = object_layout.word_at(self._at)
            self._version = self._word.value
        self._copy = dict(os.environ if self._table is None else self._table)
        self._holds = self.holds  # native code has its address

    def holds(self) -> bool:
        """Return True if no variable has changed since."""
        if os.environ is not self._owner:
            return False
        if self._offset is not None and self._word.value == self._version:
            return True
        return bool(self._copy == (os.environ if self._table is None else self._table))

    def native_conditions(self) -> list[Row]:
        """Return sufficient conditions for `holds` that native code can check. They compare
        addresses of values that this object keeps alive.
        """
        if self._offset is None:
            return [(CALL, id(self._holds), 0, 0)]
        owner = (ITEM, id(vars(os)), id(_ENVIRON), id(self._owner))
        return [owner, (WORD, self._at, 0, self._version)]
