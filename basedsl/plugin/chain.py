"""Questions with one value: changed by each plugin in turn, answered by the first, or only told."""

from __future__ import annotations

from typing import Any

from basedsl.errors import with_article
from basedsl.plugin.answers import Answer, PluginError, ask


def chained(found: list[Answer], values: dict[str, Any], name: str, what: str) -> Any:
    """Return `values[name]` as each plugin in turn leaves it; None of a plugin leaves it as it is.
    Raises PluginError for a value of another class; `what` is for the message.
    """
    kind = type(values[name])

    def change(plain: list[Answer]) -> Any:
        now = values[name]
        for one in plain:
            now = _checked(one, one({**values, name: now}), now, kind, what)
        return now

    made = ask(found, values, change)
    return values[name] if made is None else made


def _checked(one: Answer, made: Any, before: Any, kind: type, what: str) -> Any:
    if made is None:
        return before
    if not isinstance(made, kind):
        raise PluginError(
            f"the plugin {one.plugin!r} put {with_article(type(made))} in place of {what}, which "
            f"is {with_article(kind)}"
        )
    return made


def first(found: list[Answer], values: dict[str, Any]) -> Any:
    """Return the first answer that is not None."""

    def choose(plain: list[Answer]) -> Any:
        return next((a for one in plain if (a := one(values)) is not None), None)

    return ask(found, values, choose) if found else None


def noted(found: list[Answer], values: dict[str, Any]) -> None:
    """Tell every plugin. Raises PluginError for one that returns something."""

    def tell(plain: list[Answer]) -> None:
        for one in plain:
            made = one(values)
            if made is not None:
                raise PluginError(
                    f"{one.hook} of the plugin {one.plugin!r} returned {with_article(type(made))}; "
                    "it only sees"
                )

    if found:
        ask(found, values, tell)
