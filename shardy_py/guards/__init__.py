"""Guarded calls into the code of plugins, and the texts of their errors."""
