"""Operands of one instruction: each tensor as one aligned piece in the IR.

A fragment in registers whose elements lie apart (for instance a view of an accumulator in another
instruction's order) is gathered into a piece and, if written, scattered back. That costs no
instructions: registers are assigned while compiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from basedsl_cute.atoms.copy_instruction import contiguous_piece, unproven
from basedsl_cute.tensors.make_tensor import make_rmem_tensor
from basedsl_cute.tensors.pointer import storage_bits
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vectorized_access import load_vector, store_vector


class RegisterOperand(NamedTuple):
    """A tensor of `bits` bits that an instruction reads, or writes if `written`.

    `name` begins error messages; `align` is in bytes, by default the size of the piece.
    """

    tensor: Tensor
    bits: int
    written: bool
    name: str
    align: int | None = None


@contextmanager
def as_pieces(operands: Sequence[RegisterOperand]) -> Iterator[list[Any]]:
    """Give the pieces of the operands to the block; scatter the written ones after it."""
    pieces, scattered = [], []
    for operand in operands:
        piece = contiguous_piece(operand.tensor, operand.bits, operand.align)
        if piece is None:
            if operand.tensor.memspace != "rmem":
                raise unproven(operand.name, operand.tensor, operand.bits)
            gathered = _gathered(operand)
            piece = contiguous_piece(gathered, operand.bits, operand.align)
            if operand.written:
                scattered.append((operand.tensor, gathered))
        pieces.append(piece)
    yield pieces
    for tensor, gathered in scattered:
        store_vector(tensor, load_vector(gathered))


def _gathered(operand: RegisterOperand) -> Tensor:
    dtype = operand.tensor.element_type
    made = make_rmem_tensor(operand.bits // storage_bits(dtype), dtype)
    if not operand.written:
        store_vector(made, load_vector(operand.tensor))
    return made
