"""Explanations and differences as text."""
