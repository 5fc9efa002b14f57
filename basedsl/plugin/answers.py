"""Asking plugins: in which order, within which wrappers, and with errors that name them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pluggy

from basedsl.errors import DSLError
from basedsl.plugin.hookspecs import DSLS


class PluginError(DSLError):
    """A plugin that breaks the contract of `basedsl.plugin.hookspecs`, or a name that no plugin
    has.
    """


@dataclass(frozen=True)
class Answer:
    """The function by which `plugin` answers a hook."""

    plugin: str
    hook: str
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    is_wrapper: bool

    def __call__(self, values: dict[str, Any]) -> Any:
        """Answer with the parameters that the function wants. Errors of the plugin name it."""
        with_name = f"the plugin {self.plugin!r} failed in {self.hook}"
        try:
            return self.function(*(values[name] for name in self.parameters))
        except DSLError:
            raise
        except Exception as error:  # a plugin's code
            raise PluginError(f"{with_name}: {described(error)}") from error


def answers(caller: pluggy.HookCaller, dsl: str | None = None) -> list[Answer]:
    """Return the answers to a hook, for one DSL or for all, in the order in which they are asked;
    wrappers first.
    """
    found = [
        (_rank(impl), impl)
        for impl in caller.get_hookimpls()
        if dsl is None or (only := getattr(impl.function, DSLS, None)) is None or dsl in only
    ]
    found.sort(key=lambda one: one[0])
    return [
        Answer(impl.plugin_name, caller.name, impl.function, tuple(impl.argnames), impl.wrapper)
        for _, impl in found
    ]


def _rank(impl: Any) -> tuple[bool, int, str]:
    order = 0 if impl.tryfirst else 2 if impl.trylast else 1
    return not impl.wrapper, order, impl.plugin_name


def ask(found: list[Answer], values: dict[str, Any], inner: Callable[[list[Answer]], Any]) -> Any:
    """Return what `inner` makes of the answers that are no wrappers, as the wrappers around it
    change it.
    """
    if not found or not found[0].is_wrapper:
        return inner(found)
    wrapper, *others = found
    generator: Any = wrapper(values)
    _expect_yield(wrapper, generator)
    try:
        result = ask(others, values, inner)
    except Exception as error:  # given to the wrapper
        failure = error
        return _end(wrapper, lambda: generator.throw(failure))
    return _end(wrapper, lambda: generator.send(result))


def _expect_yield(wrapper: Answer, generator: Any) -> None:
    try:
        next(generator)
    except StopIteration:
        raise PluginError(
            f"{wrapper.hook} of the plugin {wrapper.plugin!r} is a wrapper and did not yield"
        ) from None


def _end(wrapper: Answer, resume: Callable[[], Any]) -> Any:
    try:
        resume()
    except StopIteration as end:
        return end.value
    raise PluginError(f"{wrapper.hook} of the plugin {wrapper.plugin!r} yields twice")


def described(error: BaseException) -> str:
    """Return an exception as text, with the file and line of the innermost frame that is no part of
    the import machinery.
    """
    message = error.message if isinstance(error, DSLError) else str(error)
    text = f"{type(error).__name__}: {message}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    import traceback

    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen ")
        and os.path.dirname(frame.filename) not in (_HERE, _METADATA)
    ]
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if frames else text


_HERE = os.path.dirname(__file__)
_METADATA = os.path.join(os.path.dirname(os.__file__), "importlib", "metadata")
