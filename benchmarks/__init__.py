"""Ours and the C++ passes side by side; see ``python -m benchmarks --help``."""
