"""The facts of a product on which the choice of a Hopper kernel depends."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["LONG_K", "MEMORY", "MIN_STEPS_OF_PART", "REDUCTION", "Problem"]

MEMORY = 3.85e6  # bytes in a microsecond from device memory
LONG_K = 2048 * 16  # bits of K from which blocks share loads
MIN_STEPS_OF_PART = 8  # of 128 bytes of K, in a slice that is multiplied on its own
REDUCTION = 2.0  # microseconds of the kernel that reduces partial sums
_REDUCED = 3.5e6  # bytes that it reads or writes in a microsecond


@dataclass(frozen=True)
class Problem:
    """The facts of a product on which the choice of its kernel depends."""

    m: int
    n: int
    k: int
    batches: int
    bits: int  # of an element of A and B
    bits_of_c: int
    processors: int  # multiprocessors of the GPU
    stores: bool  # TMA can write C
    is_column_major: bool = False  # C is
    balances: bool = True  # K is contiguous in the longer operand: tiles of any width load as fast
    shorter_balances: bool = True  # and in the shorter one

    @property
    def k_bits(self) -> int:
        """Bits of a row of A."""
        return self.k * self.bits

    @property
    def memory_time(self) -> float:
        """Microseconds to move all operands and C between device memory and the chip once."""
        operands = (self.m + self.n) * self.k * self.bits
        return self.batches * (operands + self.m * self.n * self.bits_of_c) / 8 / MEMORY

    @property
    def shortest(self) -> int:
        """The extent of the shorter mode."""
        return min(self.m, self.n)

    def tiles(self, rows: int, columns: int) -> int:
        """The number of tiles of C."""
        return -(-self.m // rows) * -(-self.n // columns) * self.batches

    def row_major(self) -> Problem:
        """The product whose result has contiguous rows: if C is column-major, C^T = B A^T."""
        if not self.is_column_major:
            return self
        return replace(self, m=self.n, n=self.m, is_column_major=False)

    def has_parts(self, parts: int) -> bool:
        """True if K makes so many slices of whole steps, of which none is short or empty but the
        last one. They take the place of batches.
        """
        if self.batches > 1:
            return False
        steps = -(-self.k_bits // 1024)
        each = -(-steps // parts)
        return each >= MIN_STEPS_OF_PART and (parts - 1) * each < steps

    def in_parts(self, parts: int) -> Problem:
        """The slices of K as batches, into partial sums of 32 bits that fill whole tiles."""
        rows = -(-self.m // 128) * 128
        return replace(
            self,
            m=rows,
            k=self.k // parts,
            batches=parts,
            bits_of_c=32,
            stores=True,
            balances=False,
        )

    def reduction_time(self, parts: int) -> float:
        """Microseconds of the kernel that reduces the partial sums of the slices of K."""
        return REDUCTION + self.m * self.n * (4 * parts + self.bits_of_c / 8) / _REDUCED
