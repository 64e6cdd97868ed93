"""Kernel modules as a user has them: read, run, checked, compared stage by stage, reduced."""
