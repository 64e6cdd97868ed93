"""Analyses of programs and runs: cost, differences, explained communication, sweeps over schedules."""
