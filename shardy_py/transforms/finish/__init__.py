"""Passes that make the result of propagation usable."""
