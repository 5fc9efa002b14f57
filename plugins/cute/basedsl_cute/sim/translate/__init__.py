"""Translation of a lowered kernel to Python: records, analyses, and the emitter of its text."""
