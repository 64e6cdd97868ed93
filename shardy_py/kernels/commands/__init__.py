"""The command that makes kernels."""
