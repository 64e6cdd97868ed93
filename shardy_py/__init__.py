"""Sharding propagation for tensor programs of any dialect."""
