"""Sets up logging by the options: compilations on the console, in a file, or nowhere.

All loggers are below `basedsl`, so a program may set up its own handlers instead.
"""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

from basedsl.option_fields import OptionError
from basedsl.options import Options

ROOT = "basedsl"
FILE = "basedsl.log"

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_lock = threading.Lock()
_installed: tuple[tuple[bool, Path | None, str], list[logging.Handler], int] | None = None


def logger(name: str) -> logging.Logger:
    """Return the logger of the library's part `name`, such as "compile"."""
    return logging.getLogger(f"{ROOT}.{name}")


def configure_logs(settings: Options) -> None:
    """Install the handlers that `settings` asks for."""
    global _installed
    file = (settings.dump_dir or Path.cwd()) / FILE if settings.log_to_file else None
    wanted = (settings.log_to_console, file, settings.log_level)
    with _lock:
        if _installed is None and not (settings.log_to_console or file):
            return
        if _installed is not None and _installed[0] == wanted:
            return
        root = logging.getLogger(ROOT)
        if _installed is not None and _installed[1]:
            for handler in _installed[1]:
                root.removeHandler(handler)
                handler.close()
            root.setLevel(_installed[2])
        level = root.level
        handlers: list[logging.Handler] = []
        if settings.log_to_console:
            handlers.append(logging.StreamHandler(sys.stderr))
        if file is not None:
            handlers.append(_file_handler(file))
        for handler in handlers:
            handler.setFormatter(logging.Formatter(_FORMAT))
            root.addHandler(handler)
        if handlers:
            root.setLevel(_level(settings.log_level))
        _installed = wanted, handlers, level


def _file_handler(file: Path) -> logging.Handler:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return logging.FileHandler(file)
    except OSError as error:
        raise OptionError(
            f"the log {file} cannot be written: {error.strerror}",
            hint="the option dump_dir names its folder, log_to_file asks for it",
        ) from None


def _level(text: str) -> int:
    return int(text) if text.isdigit() else int(getattr(logging, text.upper()))
