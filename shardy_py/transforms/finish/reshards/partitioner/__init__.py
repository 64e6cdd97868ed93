"""The axes along which XLA's SPMD partitioner computes an op, for estimates: one file per kind of op."""
