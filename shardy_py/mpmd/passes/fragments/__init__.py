"""Passes that merge, split, simplify and move fragments."""
