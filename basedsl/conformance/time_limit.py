"""A limit to the time of one program."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


class TookTooLong(AssertionError):
    """A program took longer than its limit, to compile or to run."""


@contextlib.contextmanager
def limited(what: str, seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the `with` block after `seconds`; 0 is no limit.

    Compiled code does not notice: where it still runs after as long again, the process prints where
    it was and ends. Outside of the main thread there is no limit.
    """
    alarm = getattr(signal, "SIGALRM", None)
    is_main = threading.current_thread() is threading.main_thread()
    if not seconds or alarm is None or not is_main:
        yield
        return

    def expired(number: int, frame: FrameType | None) -> NoReturn:
        raise TookTooLong(f"{what} takes longer than {seconds:g} s")

    before = signal.signal(alarm, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(alarm, before)
