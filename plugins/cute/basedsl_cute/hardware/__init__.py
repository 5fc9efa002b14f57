"""Hardware facts, each stated once: architectures, limits, requirements, memories, tensor maps."""
