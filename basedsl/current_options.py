"""The options that the environment variables set now, for the calls of one language."""

from __future__ import annotations

from basedsl.language import Language
from basedsl.options import Options
from basedsl.plugin import plugin_manager
from basedsl.staleness.environment import Environment
from basedsl.warning import OptionWarning, warn

_warned: set[tuple[str, bool]] = set()


class CurrentOptions:
    """The options of `language`, read again when an environment variable has changed."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._known: tuple[Environment, Options, int] | None = None
        self._numbers: dict[Options, int] = {}

    @property
    def record(self) -> type[Options]:
        """The class of the options: the language's, with those that plugins add."""
        language = self._language
        return plugin_manager().options_class(language.name, language.options_class)

    def read(self) -> Options:
        """Return the options as the environment sets them. Raises OptionError for a variable whose
        text is no value of its option.
        """
        known = self._known
        if known is None or not known[0].holds():
            environment = Environment()
            record = self.record
            found = record.from_environment()
            number = self._numbers.setdefault(found, len(self._numbers))
            known = self._known = environment, found, number
            _warn_of_unknown(record, found)
        return known[1]

    def number(self) -> int:
        """Return a number for the options as the environment sets them, the same for equal ones: a
        part of a key that is cheaper than they are.
        """
        known = self._known
        if known is None or not known[0].holds():
            self.read()
            known = self._known
            assert known is not None
        return known[2]


def _warn_of_unknown(record: type[Options], options: Options) -> None:
    """Warn of variables with the DSL's prefix that nothing reads, once for each."""
    for name, near in record.unknown_variables().items():
        if (name, options.warnings_as_errors) not in _warned:
            _warned.add((name, options.warnings_as_errors))
            hint = f"did you mean {near}?" if near else "`basedsl options` lists what there is"
            message = f"nothing reads the environment variable {name}"
            warn(options, message, OptionWarning, hint=hint)
