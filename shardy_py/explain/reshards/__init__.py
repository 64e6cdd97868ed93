"""Reasons of reshards, and the annotations that would remove them."""
