"""Staleness: a record of everything that a compilation read besides its arguments, and its checks.

`guards` walks what a function leads to; `guard_kinds` has one class for each kind of thing read,
with an exact check and the conditions that native code can check; `containers` reads the standard
library's mutable containers; `environment` is `os.environ` at one time.
"""
