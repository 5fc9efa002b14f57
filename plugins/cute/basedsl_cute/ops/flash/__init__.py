"""Attention: softmax(Q K^T) V tile by tile, with masks and scores as plain functions."""
