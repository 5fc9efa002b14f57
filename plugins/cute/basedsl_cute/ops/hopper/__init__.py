"""Matrix products by TMA and `wgmma` (sm_90a)."""
