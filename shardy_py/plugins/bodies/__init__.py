"""Scalar bodies and indexing maps that a dialect gives as texts."""
