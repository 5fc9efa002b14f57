"""The simulated machine: lanes, warps, blocks, clusters, their memories, barriers and checks."""
