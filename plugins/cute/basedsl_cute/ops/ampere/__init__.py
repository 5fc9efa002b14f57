"""Matrix products by `mma.sync` (sm_80 and later) and by scalar instructions."""
