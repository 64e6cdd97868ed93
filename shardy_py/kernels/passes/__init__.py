"""The passes between a kernel as it is emitted and its lowering, one per file."""
