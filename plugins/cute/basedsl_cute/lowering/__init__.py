"""cute IR -> NVVM -> PTX -> machine code, and the table of targets."""
