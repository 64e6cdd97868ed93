"""Passes over programs, the pipelines they form, and the runner of passes."""
