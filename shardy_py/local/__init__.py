"""Passes that make of a global program the one that each device runs."""
