"""The kinds of the loops of structured ops, in MLIR's words."""

PARALLEL = "parallel"
REDUCTION = "reduction"
