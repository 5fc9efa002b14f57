"""Hardware facts, each stated once: architectures, limits, requirements, memories, tensor maps.

`targets` has a row for each architecture and the constants that all of them share; `requirements`
says which of them have a feature; `launch_limits` checks launches. A new architecture is a row of
`TARGETS`; a feature of some architectures is a row of `requirements`.
"""
