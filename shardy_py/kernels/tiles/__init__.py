"""Kernels at the level of tiles: one program computes a tile of the result, in XLA's dialect ``xtile``."""
