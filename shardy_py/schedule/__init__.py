"""Schedules: in which order ops decide, as values and as text."""
