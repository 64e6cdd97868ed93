"""The axes along which XLA's SPMD partitioner computes an op, for estimates of what it does: one file per kind of op."""
