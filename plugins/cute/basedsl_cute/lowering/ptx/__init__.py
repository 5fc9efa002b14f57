"""Lowering that only PTX needs, and the assembler: NVVM to PTX, machine code, its report."""
