"""Costs of programs on machines, sessions and sweeps over schedules, and advice."""
